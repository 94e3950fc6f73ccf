#!/usr/bin/env sysbench
-- As many rows as go in: every client fills a table of its own in bulk. An event hands one row
-- over; a statement goes out when the driver has a packet full, so events are not statements.

local rows = 0

-- One table for each thread.
local function for_each_table(what, sql)
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   for n = 1, sysbench.opt.threads do
      print(("%s table 'sbtest%d'..."):format(what, n))
      con:query(sql:format(n))
   end
end

function prepare()
   for_each_table("Creating", "CREATE TABLE IF NOT EXISTS sbtest%d " ..
                     "(id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id))")
end

function cleanup()
   for_each_table("Dropping", "DROP TABLE IF EXISTS sbtest%d")
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function event()
   if rows == 0 then
      con:bulk_insert_init("INSERT INTO sbtest" .. sysbench.tid + 1 .. " VALUES")
   end
   rows = rows + 1
   con:bulk_insert_numbers(rows, rows)
end

function thread_done()
   -- A client that came too late for any event has begun nothing.
   if rows > 0 then
      con:bulk_insert_done()
   end
   con:disconnect()
end

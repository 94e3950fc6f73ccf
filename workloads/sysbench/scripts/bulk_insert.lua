#!/usr/bin/env sysbench
-- The highest rate of inserts: each client fills its own table in bulk. An event adds one row, and
-- the driver sends a statement for each full packet, so events are not statements.

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
   -- A client that ran no event has not begun a bulk insert.
   if rows > 0 then
      con:bulk_insert_done()
   end
   con:disconnect()
end

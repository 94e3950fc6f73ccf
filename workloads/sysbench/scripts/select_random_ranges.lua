#!/usr/bin/env sysbench
-- Counts the rows of several short ranges of the indexed column at once. Each client uses its own
-- part of the values, so that clients share the index and not the rows.

local common = require("oltp_common")

sysbench.cmdline.options.number_of_ranges = {"Ranges in a statement", 10}
sysbench.cmdline.options.delta = {"Last value of a range minus its first", 5}

local drop_tables = cleanup

function cleanup()
   assert(sysbench.opt.tables == 1, "this test uses only the table sbtest1: leave --tables at 1")
   drop_tables()
end

local first, last

function prepare_statements()
   local opt = sysbench.opt
   local ranges, types = {}, {}
   for i = 1, opt.number_of_ranges do
      ranges[i] = "k BETWEEN ? AND ?"
      types[2 * i - 1], types[2 * i] = common.INT, common.INT
   end
   stmt[1].ranges, param[1].ranges = common.prepare_bound(
      "SELECT count(k) FROM sbtest1 WHERE " .. table.concat(ranges, " OR "), types)

   local part = opt.table_size / opt.threads
   first = part * (sysbench.tid % opt.threads)
   last = first + part
end

function event()
   local params, rand, delta = param[1].ranges, sysbench.rand, sysbench.opt.delta
   for i = 1, #params, 2 do
      local k = rand.default(first, last)
      params[i]:set(k)
      params[i + 1]:set(k + delta)
   end
   stmt[1].ranges:execute()
   check_reconnect()
end

#!/usr/bin/env sysbench
-- Reads rows by several values of the indexed column at once. Each client uses its own part of the
-- values, so that clients share the index and not the rows.

local common = require("oltp_common")

sysbench.cmdline.options.random_points = {"Values in the list of a statement", 10}

local drop_tables = cleanup

function cleanup()
   assert(sysbench.opt.tables == 1, "this test uses only the table sbtest1: leave --tables at 1")
   drop_tables()
end

local first, last

function prepare_statements()
   local opt = sysbench.opt
   local marks, types = {}, {}
   for i = 1, opt.random_points do
      marks[i], types[i] = "?", common.INT
   end
   stmt[1].points, param[1].points = common.prepare_bound(
      "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (" .. table.concat(marks, ", ") .. ")", types)

   local part = opt.table_size / opt.threads
   first = part * (sysbench.tid % opt.threads)
   last = first + part
end

function event()
   local params, rand = param[1].points, sysbench.rand
   for i = 1, #params do
      params[i]:set(rand.default(first, last))
   end
   stmt[1].points:execute()
   check_reconnect()
end

#!/usr/bin/env sysbench
-- Deletes by id. Deleted rows are not inserted again, so more and more deletes find no row.

require("oltp_common")

function prepare_statements()
   prepare_for_each_table("deletes")
end

function event()
   local opt, rand = sysbench.opt, sysbench.rand
   local n = rand.uniform(1, opt.tables)

   param[n].deletes[1]:set(rand.default(1, opt.table_size))
   stmt[n].deletes:execute()
   check_reconnect()
end

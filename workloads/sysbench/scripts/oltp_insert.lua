#!/usr/bin/env sysbench
-- Inserts of one row, sent as text.

require("oltp_common")

sysbench.cmdline.commands.prepare = {
   function()
      if not sysbench.opt.auto_inc then
         -- The ids of a run are spread over all integers and could equal those of loaded rows.
         sysbench.opt.table_size = 0
      end
      cmd_prepare()
   end,
   sysbench.cmdline.PARALLEL_COMMAND
}

-- MySQL replaces an id of 0 by the next number. Other servers would insert a row with the id 0.
local zero_numbers_rows

function prepare_statements()
   -- This script prepares nothing, but thread_init calls the function.
end

function event()
   local opt, rand = sysbench.opt, sysbench.rand
   local n = rand.uniform(1, opt.tables)
   local k = rand.default(1, opt.table_size)
   local c, pad = get_c_value(), get_pad_value()

   if zero_numbers_rows == nil then
      zero_numbers_rows = drv:name() == "mysql"
   end
   if opt.auto_inc and not zero_numbers_rows then
      con:query(("INSERT INTO sbtest%d (k, c, pad) VALUES (%d, '%s', '%s')"):format(n, k, c, pad))
   else
      -- unique() is unsigned, and the column is signed.
      local id = opt.auto_inc and 0 or rand.unique() - 2147483648
      con:query(("INSERT INTO sbtest%d (id, k, c, pad) VALUES (%d, %d, '%s', '%s')"):format(n, id, k, c, pad))
   end
   check_reconnect()
end

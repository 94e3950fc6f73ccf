#!/usr/bin/env sysbench
-- A transaction of both kinds of updates, a delete, and an insert of the same row.

require("oltp_common")

function prepare_statements()
   if not sysbench.opt.skip_trx then
      prepare_begin()
      prepare_commit()
   end
   prepare_index_updates()
   prepare_non_index_updates()
   prepare_delete_inserts()
end

function event()
   local in_transaction = not sysbench.opt.skip_trx

   if in_transaction then
      begin()
   end
   execute_index_updates()
   execute_non_index_updates()
   execute_delete_inserts()
   if in_transaction then
      commit()
   end
   check_reconnect()
end

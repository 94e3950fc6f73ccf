#!/usr/bin/env sysbench
-- Updates of the indexed column: the row and its entry in the index on k change.

require("oltp_common")

function prepare_statements()
   prepare_index_updates()
end

function event()
   execute_index_updates()
   check_reconnect()
end

#!/usr/bin/env sysbench
-- Reads one row by its id. An event is one statement in its own transaction.

require("oltp_common")

function prepare_statements()
   -- --point_selects is for the transactions of the other scripts; here it is always one.
   sysbench.opt.point_selects = 1
   prepare_point_selects()
end

function event()
   execute_point_selects()
   check_reconnect()
end

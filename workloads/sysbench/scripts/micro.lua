#!/usr/bin/env sysbench
-- One kind of statement per run, on the tables of the oltp_* scripts. It locates a slower part of a
-- server better than a mix does. --micro_test names the test; `sysbench micro.lua tests` lists all
-- tests with their SQL.

local common = require("oltp_common")

sysbench.cmdline.options.micro_test = {"Name of the test; the command tests lists all names", "point-pk"}
sysbench.cmdline.options.random_points = {"Values in a list, and rows of a multi-row insert", 100}
sysbench.cmdline.options.hot_points = {"Rows in the middle of the table that the hot tests read", 100}

local rand = sysbench.rand
local INT, C, PAD = common.INT, common.C, common.PAD

-- ------------------------------------------------------------------------- values of the parameters

-- Each way has `types`, the types of the marks, and `draw`, which sets their values. draw(params, opt)
-- runs in every event, so it allocates no tables, strings or functions. A way without draw keeps the
-- values that `once` sets after binding. If options set the number of marks, types is a function.

local function repeated(mark, count)
   local marks = {}
   for i = 1, count do
      marks[i] = mark
   end
   return marks
end

local none = {types = {}}

local id = {types = {INT}, draw = function(p, opt)
   p[1]:set(rand.default(1, opt.table_size))
end}

local id_zipfian = {types = {INT}, draw = function(p, opt)
   p[1]:set(rand.zipfian(1, opt.table_size))
end}

local function first_hot(opt)
   return math.floor((opt.table_size - opt.hot_points) / 2) + 1
end

local id_hot = {types = {INT}, draw = function(p, opt)
   local first = first_hot(opt)
   p[1]:set(rand.uniform(first, first + opt.hot_points - 1))
end}

-- No row has a negative id, except for rows that oltp_insert adds with --auto_inc=off.
local id_missing = {types = {INT}, draw = function(p, opt)
   p[1]:set(-rand.default(1, opt.table_size))
end}

local range = {types = {INT, INT}, draw = function(p, opt)
   local first = rand.default(1, opt.table_size)
   p[1]:set(first)
   p[2]:set(first + opt.range_size - 1)
end}

local list = {types = function(opt) return repeated(INT, opt.random_points) end, draw = function(p, opt)
   local rows = opt.table_size
   for i = 1, #p do
      p[i]:set(rand.default(1, rows))
   end
end}

-- The same adjacent rows in every event.
local list_hot = {types = function(opt) return repeated(INT, opt.hot_points) end, once = function(p, opt)
   local before = first_hot(opt) - 1
   for i = 1, #p do
      p[i]:set(before + i)
   end
end}

-- Ten short ranges, far from each other.
local ranges = {types = repeated(INT, 20), draw = function(p, opt)
   local rows = opt.table_size
   for i = 1, 20, 2 do
      local first = rand.default(1, rows)
      p[i]:set(first)
      p[i + 1]:set(first + 5)
   end
end}

local c_then_id = {types = {C, INT}, draw = function(p, opt)
   p[1]:set_rand_str(common.C_TEMPLATE)
   p[2]:set(rand.default(1, opt.table_size))
end}

local c_then_id_zipfian = {types = {C, INT}, draw = function(p, opt)
   p[1]:set_rand_str(common.C_TEMPLATE)
   p[2]:set(rand.zipfian(1, opt.table_size))
end}

local c_only = {types = {C}, draw = function(p)
   p[1]:set_rand_str(common.C_TEMPLATE)
end}

local c_then_range = {types = {C, INT, INT}, draw = function(p, opt)
   local first = rand.default(1, opt.table_size)
   p[1]:set_rand_str(common.C_TEMPLATE)
   p[2]:set(first)
   p[3]:set(first + opt.range_size - 1)
end}

local c_then_list = {types = function(opt)
   local types = repeated(INT, opt.random_points + 1)
   types[1] = C
   return types
end, draw = function(p, opt)
   local rows = opt.table_size
   p[1]:set_rand_str(common.C_TEMPLATE)
   for i = 2, #p do
      p[i]:set(rand.default(1, rows))
   end
end}

local k_c_then_id = {types = {INT, C, INT}, draw = function(p, opt)
   local rows = opt.table_size
   p[1]:set(rand.default(1, rows))
   p[2]:set_rand_str(common.C_TEMPLATE)
   p[3]:set(rand.default(1, rows))
end}

local row = {types = {INT, C, PAD}, draw = function(p, opt)
   p[1]:set(rand.default(1, opt.table_size))
   p[2]:set_rand_str(common.C_TEMPLATE)
   p[3]:set_rand_str(common.PAD_TEMPLATE)
end}

local rows = {types = function(opt)
   local types = {}
   for i = 1, opt.random_points do
      types[3 * i - 2], types[3 * i - 1], types[3 * i] = INT, C, PAD
   end
   return types
end, draw = function(p, opt)
   local count = opt.table_size
   for i = 1, #p, 3 do
      p[i]:set(rand.default(1, count))
      p[i + 1]:set_rand_str(common.C_TEMPLATE)
      p[i + 2]:set_rand_str(common.PAD_TEMPLATE)
   end
end}

-- Four marks: the row with its id.
local id_row = {types = {INT, INT, C, PAD}, draw = function(p, opt)
   local count = opt.table_size
   p[1]:set(rand.default(1, count))
   p[2]:set(rand.default(1, count))
   p[3]:set_rand_str(common.C_TEMPLATE)
   p[4]:set_rand_str(common.PAD_TEMPLATE)
end}

-- ------------------------------------------------------------------------------------- the tests

-- In the SQL, T is the table, LIST has --random_points marks, HOT has --hot_points marks, RANGES is
-- ten times "k BETWEEN ? AND ?", ROWS the values of a multi-row insert, and N the --range_size.
-- Reads come first, then scans, then writes, so a suite in this order reads the tables as they were
-- loaded.
local tests = {
   {"empty", "SELECT 1", none},

   {"point-pk", "SELECT c FROM T WHERE id=?", id},
   {"point-pk-covered", "SELECT id FROM T WHERE id=?", id},
   {"point-pk-hot", "SELECT c FROM T WHERE id=?", id_hot},
   {"point-pk-zipfian", "SELECT c FROM T WHERE id=?", id_zipfian},
   {"point-pk-missing", "SELECT c FROM T WHERE id=?", id_missing},
   {"point-si", "SELECT c FROM T WHERE k=?", id},
   {"point-si-covered", "SELECT k FROM T WHERE k=?", id},

   {"points-pk", "SELECT c FROM T WHERE id IN (LIST)", list},
   {"points-pk-covered", "SELECT id FROM T WHERE id IN (LIST)", list},
   {"points-pk-hot", "SELECT c FROM T WHERE id IN (HOT)", list_hot},
   {"points-si", "SELECT c FROM T WHERE k IN (LIST)", list},
   {"points-si-covered", "SELECT k FROM T WHERE k IN (LIST)", list},
   {"points-si-hot", "SELECT c FROM T WHERE k IN (HOT)", list_hot},

   {"range-pk", "SELECT c FROM T WHERE id BETWEEN ? AND ?", range},
   {"range-pk-covered", "SELECT id FROM T WHERE id BETWEEN ? AND ?", range},
   {"range-si", "SELECT c FROM T WHERE k BETWEEN ? AND ?", range},
   {"range-si-covered", "SELECT k FROM T WHERE k BETWEEN ? AND ?", range},
   {"range-pk-forward", "SELECT c FROM T WHERE id >= ? ORDER BY id LIMIT N", id},
   {"range-pk-backward", "SELECT c FROM T WHERE id <= ? ORDER BY id DESC LIMIT N", id},
   {"range-si-forward", "SELECT c FROM T WHERE k >= ? ORDER BY k LIMIT N", id},
   {"range-si-backward", "SELECT c FROM T WHERE k <= ? ORDER BY k DESC LIMIT N", id},
   {"range-pk-like", "SELECT c FROM T WHERE id BETWEEN ? AND ? AND c LIKE '1%'", range},
   {"ranges-si", "SELECT COUNT(k) FROM T WHERE RANGES", ranges},

   {"count-pk", "SELECT COUNT(*) FROM T WHERE id BETWEEN ? AND ?", range},
   {"count-pk-notcovered", "SELECT COUNT(c) FROM T WHERE id BETWEEN ? AND ?", range},
   {"count-si", "SELECT COUNT(*) FROM T WHERE k BETWEEN ? AND ?", range},
   {"sum-pk", "SELECT SUM(k) FROM T WHERE id BETWEEN ? AND ?", range},
   {"order-pk", "SELECT c FROM T WHERE id BETWEEN ? AND ? ORDER BY c", range},
   {"distinct-pk", "SELECT DISTINCT c FROM T WHERE id BETWEEN ? AND ? ORDER BY c", range},
   {"distinct-si", "SELECT DISTINCT k FROM T WHERE k BETWEEN ? AND ?", range},
   {"group-si", "SELECT k, COUNT(*) FROM T WHERE k BETWEEN ? AND ? GROUP BY k", range},
   {"min-max-si", "SELECT MIN(k), MAX(k) FROM T", none},
   {"join-pk", "SELECT b.c FROM T a JOIN T b ON b.id=a.k WHERE a.id BETWEEN ? AND ?", range},

   {"count-all", "SELECT COUNT(*) FROM T", none},
   {"scan-pk", "SELECT * FROM T WHERE LENGTH(c) < 0", none},
   {"scan-si", "SELECT SUM(k) FROM T WHERE k > 0", none},
   {"scan-like", "SELECT COUNT(*) FROM T WHERE c LIKE '50%'", none},
   {"scan-top", "SELECT id FROM T ORDER BY c LIMIT 10", none},

   {"update-index", "UPDATE T SET k=k+1 WHERE id=?", id},
   {"update-index-zipfian", "UPDATE T SET k=k+1 WHERE id=?", id_zipfian},
   {"update-nonindex", "UPDATE T SET c=? WHERE id=?", c_then_id},
   {"update-nonindex-zipfian", "UPDATE T SET c=? WHERE id=?", c_then_id_zipfian},
   {"update-one", "UPDATE T SET c=? WHERE id=1", c_only},
   {"update-both", "UPDATE T SET k=?, c=? WHERE id=?", k_c_then_id},
   {"update-same", "UPDATE T SET k=k WHERE id=?", id},
   {"update-missing", "UPDATE T SET k=k+1 WHERE id=?", id_missing},
   {"update-si", "UPDATE T SET c=? WHERE k=?", c_then_id},
   {"update-list", "UPDATE T SET c=? WHERE id IN (LIST)", c_then_list},
   {"update-range-pk", "UPDATE T SET c=? WHERE id BETWEEN ? AND ?", c_then_range},
   {"update-range-index", "UPDATE T SET k=k+1 WHERE id BETWEEN ? AND ?", range},

   {"upsert", {
      mysql = "INSERT INTO T (id, k, c, pad) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE k=k+1",
      other = "INSERT INTO T (id, k, c, pad) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET k=T.k+1",
   }, id_row},
   -- The statements of oltp_common, in a transaction.
   {"delete-insert", "DELETE FROM T WHERE id=?; INSERT INTO T (id, k, c, pad) VALUES (?, ?, ?, ?)"},
   {"insert", "INSERT INTO T (k, c, pad) VALUES (?, ?, ?)", row, numbered = true},
   {"insert-rows", "INSERT INTO T (k, c, pad) VALUES ROWS", rows, numbered = true},
   {"delete", "DELETE FROM T WHERE id=?", id},
}

local function sql_text(test, driver)
   local sql = test[2]
   if type(sql) == "table" then
      sql = driver == "mysql" and sql.mysql or sql.other
   end
   return sql
end

local function find_test(name)
   for _, test in ipairs(tests) do
      if test[1] == name then
         return test
      end
   end
   error("no test named '" .. name .. "': `sysbench micro.lua tests` lists them")
end

-- The suite for experiments: an option, and its values.
sysbench.cmdline.suite = {option = "micro_test", tests = {}}
for i, test in ipairs(tests) do
   sysbench.cmdline.suite.tests[i] = test[1]
end

-- `sysbench micro.lua tests` prints a name, a tab, and the SQL on each line.
sysbench.cmdline.commands.tests = {function()
   for _, test in ipairs(tests) do
      local sql = test[2]
      if type(sql) == "table" then
         sql = sql.mysql .. " (MySQL), " .. sql.other .. " (others)"
      end
      print(test[1] .. "\t" .. sql)
   end
end}

-- Invalid options end the run before any client connects.
function init()
   local opt = sysbench.opt
   local test = find_test(opt.micro_test)
   if test.numbered and not opt.auto_inc then
      error("the server assigns the ids in the test '" .. opt.micro_test .. "': it needs --auto_inc=on")
   end
   if opt.hot_points > opt.table_size then
      error("--hot_points=" .. opt.hot_points .. " are more rows than a table has: lower it or raise --table_size")
   end
end

-- ----------------------------------------------------------------------------------- preparation

-- Replaces the words of the SQL above. T is a separate word, never a part of one.
local function expand(sql, opt, n)
   local words = {
      T = "sbtest" .. n,
      N = tostring(opt.range_size),
      LIST = table.concat(repeated("?", opt.random_points), ", "),
      HOT = table.concat(repeated("?", opt.hot_points), ", "),
      RANGES = table.concat(repeated("k BETWEEN ? AND ?", 10), " OR "),
      ROWS = table.concat(repeated("(?, ?, ?)", opt.random_points), ", "),
   }
   return (sql:gsub("%f[%w_]%u+%f[^%w_]", words))
end

local run_event

local function prepare_test(test)
   local opt, way, sql = sysbench.opt, test[3], sql_text(test, drv:name())
   local types = type(way.types) == "function" and way.types(opt) or way.types
   for n = 1, opt.tables do
      local statement, params = common.prepare_bound(expand(sql, opt, n), types)
      stmt[n].micro, param[n].micro = statement, params
      if way.once then
         way.once(params, opt)
      end
   end

   local draw = way.draw
   if draw then
      return function()
         local opt = sysbench.opt
         local n = rand.uniform(1, opt.tables)
         draw(param[n].micro, opt)
         stmt[n].micro:execute()
      end
   else
      return function()
         stmt[rand.uniform(1, sysbench.opt.tables)].micro:execute()
      end
   end
end

-- The two statements are a transaction, because another client could insert the same id between them.
local function prepare_delete_insert()
   prepare_begin()
   prepare_commit()
   prepare_delete_inserts()
   return function()
      begin()
      execute_delete_inserts()
      commit()
   end
end

function prepare_statements()
   local test = find_test(sysbench.opt.micro_test)
   run_event = test[3] and prepare_test(test) or prepare_delete_insert()
end

function event()
   run_event()
   check_reconnect()
end

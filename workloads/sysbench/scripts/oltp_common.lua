-- The shared part of the oltp_* scripts: options, tables, statements and sessions.
--
-- Many scripts of other projects require("oltp_common") and call or replace its functions. The global
-- functions, the tables `stmt` and `param`, and the order of random numbers are therefore a stable
-- interface. Only locals can change.

if sysbench.cmdline.command == nil then
   error("no command given: add prepare, warmup, prewarm, run, cleanup or help after the script's name")
end

function init()
   assert(event, "oltp_common is the shared part of other scripts and has no test: " ..
             "run one of the oltp_* scripts")
end

sysbench.cmdline.options = {
   tables = {"Number of tables, from sbtest1", 1},
   table_size = {"Rows that prepare writes into each table", 10000},
   range_size = {"Rows in a range", 100},
   point_selects = {"Reads of one row in an event", 10},
   range_selects = {"Whether events read ranges; off omits all four kinds", true},
   simple_ranges = {"Ranges read in an event", 1},
   sum_ranges = {"Ranges summed up in an event", 1},
   order_ranges = {"Ranges sorted in an event", 1},
   distinct_ranges = {"Ranges sorted and deduplicated in an event", 1},
   index_updates = {"Updates of the indexed column in an event", 1},
   non_index_updates = {"Updates of a column without an index in an event", 1},
   delete_inserts = {"Rows deleted and inserted again in an event", 1},
   skip_trx = {"Whether every statement is its own transaction", false},
   auto_inc = {"Whether the server assigns the ids; off: the client does", true},
   secondary = {"Whether id has an ordinary index instead of the primary key", false},
   create_secondary = {"Whether prepare creates the index on k", true},
   create_table_options = {"Text appended to each CREATE TABLE", ""},
   mysql_storage_engine = {"Engine of the tables (MySQL)", "innodb"},
   pgsql_variant = {"A variant of PostgreSQL with other SQL; 'redshift' has an identity " ..
                       "column, no indexes, and no delete_inserts"},
   reconnect = {"Events after which a client reconnects; 0: never", 0},
   writes_before = {"Events of oltp_write_only for every hundred rows, before the first event; 0: none", 0},
}

-- A group has eleven digits; ten groups have 119 characters, five have 59.
local C_TEMPLATE = ("###########-"):rep(9) .. "###########"
local PAD_TEMPLATE = ("###########-"):rep(4) .. "###########"

-- This is the table instead of its functions, so that a script can replace one of them. The same is
-- not possible for sysbench.opt, because sysbench replaces that table after it has read the script.
local rand = sysbench.rand

function get_c_value()
   return rand.string(C_TEMPLATE)
end

function get_pad_value()
   return rand.string(PAD_TEMPLATE)
end

local own_c_value, own_pad_value = get_c_value, get_pad_value

local function get_table_num()
   return rand.uniform(1, sysbench.opt.tables)
end

local function get_id()
   return rand.default(1, sysbench.opt.table_size)
end

local function is_redshift(driver)
   return driver == "pgsql" and sysbench.opt.pgsql_variant == "redshift"
end

-- ---------------------------------------------------------------------------------- commands

-- Calls visit(n) for the tables of this thread.
local function for_each_own_table(visit)
   local opt = sysbench.opt
   for n = sysbench.tid % opt.threads + 1, opt.tables, opt.threads do
      visit(n)
   end
end

function cmd_prepare()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   for_each_own_table(function(n) create_table(drv, con, n) end)
end

-- Reads every table and its index on k into memory.
function cmd_warmup()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   assert(drv:name() == "mysql", "warmup supports only MySQL: " ..
             "on other servers begin a run with --warmup-time instead")

   -- Without these settings, the derived tables below would be written to disk.
   con:query("SET tmp_table_size=2*1024*1024*1024")
   con:query("SET max_heap_table_size=2*1024*1024*1024")

   for_each_own_table(function(n)
      local name, rows = "sbtest" .. n, sysbench.opt.table_size
      print("Preloading table " .. name)
      con:query("ANALYZE TABLE " .. name)
      con:query(("SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %u) t"):format(name, rows))
      con:query(("SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %u) t"):format(name, rows))
   end)
end

function cleanup()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   for n = 1, sysbench.opt.tables do
      print(("Dropping table 'sbtest%d'..."):format(n))
      con:query("DROP TABLE IF EXISTS sbtest" .. n)
   end
end

sysbench.cmdline.commands = {
   prepare = {cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND},
   warmup = {cmd_warmup, sysbench.cmdline.PARALLEL_COMMAND},
   prewarm = {cmd_warmup, sysbench.cmdline.PARALLEL_COMMAND},
}

-- ------------------------------------------------------------------------------------ tables

-- The type of the columns id and k. INTEGER ends at 2^31 - 1, except in SQLite.
local function number_type(driver)
   return driver ~= "sqlite" and sysbench.opt.table_size > 2147483647 and "BIGINT" or "INTEGER"
end

-- The type of the column id if the server assigns the ids.
local function numbered_id(driver)
   local kind = number_type(driver)
   if driver == "mysql" then
      return kind .. " NOT NULL AUTO_INCREMENT"
   elseif driver == "sqlite" then
      -- SQLite assigns ids only to a primary key, and requires all of these words.
      return "INTEGER PRIMARY KEY AUTOINCREMENT"
   elseif is_redshift(driver) then
      return kind .. " IDENTITY(1,1)"
   else
      return kind == "BIGINT" and "BIGSERIAL" or "SERIAL"
   end
end

-- CREATE TABLE, and nil or the statement that creates the index on id, if CREATE TABLE cannot.
local function table_definition(driver, n)
   local opt = sysbench.opt
   local kind = number_type(driver)
   local id = opt.auto_inc and numbered_id(driver) or kind .. " NOT NULL"
   local key, engine, index = ", PRIMARY KEY (id)", "", nil

   if driver == "mysql" then
      engine = "/*! ENGINE = " .. opt.mysql_storage_engine .. " */"
      if opt.secondary then
         key = ", KEY xid (id)"
      end
   elseif opt.secondary then
      if driver == "sqlite" and opt.auto_inc then
         error("SQLite assigns ids only to a primary key: --secondary needs --auto_inc=off")
      end
      key = ""
      if not is_redshift(driver) then
         index = ("CREATE INDEX xid_%d ON sbtest%d(id)"):format(n, n)
      end
   elseif driver == "sqlite" and opt.auto_inc then
      key = ""
   end

   return ("CREATE TABLE sbtest%d(id %s, k %s DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, " ..
              "pad CHAR(60) DEFAULT '' NOT NULL%s) %s %s"):format(n, id, kind, key, engine, opt.create_table_options),
      index
end

-- c and pad are drawn before k, as in earlier versions, so the same seed writes the same rows. MySQL reserves ids for rows
-- in bulk and drops unused ones, so the ids would have gaps, although events draw from all of them. The client therefore
-- sends the ids to MySQL.
local function load_rows(con, n, driver)
   local rows, by_server = sysbench.opt.table_size, sysbench.opt.auto_inc and driver ~= "mysql"

   con:load_rows_init("sbtest" .. n, by_server and "c,pad,k" or "id,c,pad,k")
   for id = 1, rows do
      if not by_server then
         con:load_rows_int(id)
      end
      if get_c_value == own_c_value and get_pad_value == own_pad_value then
         con:load_rows_string(C_TEMPLATE)
         con:load_rows_string(PAD_TEMPLATE)
      else -- a script has replaced the functions
         con:load_rows_text(get_c_value())
         con:load_rows_text(get_pad_value())
      end
      con:load_rows_int(rand.default(1, rows))
   end
   con:load_rows_done()
end

-- Redshift accepts rows from its clients only in statements.
local function insert_rows(con, n)
   local opt = sysbench.opt
   local rows, by_server = opt.table_size, opt.auto_inc

   con:bulk_insert_init("INSERT INTO sbtest" .. n .. (by_server and "(k, c, pad) VALUES" or "(id, k, c, pad) VALUES"))
   for id = 1, rows do
      local c, pad = get_c_value(), get_pad_value()
      local k = rand.default(1, rows)
      if by_server then
         con:bulk_insert_next(("(%d, '%s', '%s')"):format(k, c, pad))
      else
         con:bulk_insert_next(("(%d, %d, '%s', '%s')"):format(id, k, c, pad))
      end
   end
   con:bulk_insert_done()
end

function create_table(drv, con, table_num)
   local driver = drv:name()
   if driver ~= "mysql" and driver ~= "pgsql" and driver ~= "sqlite" then
      error("no table definition for the driver '" .. driver .. "': use mysql, pgsql or sqlite")
   end
   local opt = sysbench.opt
   local table_sql, id_index_sql = table_definition(driver, table_num)

   print(("Creating table 'sbtest%d'..."):format(table_num))
   con:query(table_sql)
   if id_index_sql then
      con:query(id_index_sql)
   end

   if opt.table_size > 0 then
      print(("Inserting %d records into 'sbtest%d'"):format(opt.table_size, table_num))
   end
   local fill = is_redshift(driver) and insert_rows or load_rows
   fill(con, table_num, driver)

   if opt.create_secondary and not is_redshift(driver) then
      print(("Creating a secondary index on 'sbtest%d'..."):format(table_num))
      con:query(("CREATE INDEX k_%d ON sbtest%d(k)"):format(table_num, table_num))
   end
end

-- -------------------------------------------------------------------------------- statements

local INT = {sysbench.sql.type.INT}
local C = {sysbench.sql.type.CHAR, 120}
local PAD = {sysbench.sql.type.CHAR, 60}

-- Each statement with the types of its marks, in order.
local statements = {
   point_selects = {"SELECT c FROM sbtest%u WHERE id=?", INT},
   simple_ranges = {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT},
   sum_ranges = {"SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT},
   order_ranges = {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT},
   distinct_ranges = {"SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT},
   index_updates = {"UPDATE sbtest%u SET k=k+1 WHERE id=?", INT},
   non_index_updates = {"UPDATE sbtest%u SET c=? WHERE id=?", C, INT},
   deletes = {"DELETE FROM sbtest%u WHERE id=?", INT},
   inserts = {"INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", INT, INT, C, PAD},
}

local WRITES = {index_updates = true, non_index_updates = true, deletes = true, inserts = true}

-- Whether this thread's transactions write.
local writing = false

-- Prepares and binds. Returns the statement and its parameters, for events to execute and to set.
local function prepare_bound(sql, types)
   local statement, params = con:prepare(sql), {}
   for i, mark in ipairs(types) do
      params[i] = statement:bind_create(mark[1], mark[2])
   end
   if #params > 0 then
      statement:bind_param(unpack(params))
   end
   return statement, params
end

local function is_sqlite()
   return drv ~= nil and drv:name() == "sqlite"
end

-- In SQLite, a transaction that reads and then writes fails, with any timeout, if another connection
-- wrote in between. It therefore takes the write lock at its beginning.
function prepare_begin()
   stmt.begin = con:prepare(writing and is_sqlite() and "BEGIN IMMEDIATE" or "BEGIN")
end

function prepare_commit()
   stmt.commit = con:prepare("COMMIT")
end

-- Scripts prepare BEGIN before their other statements.
local function prepare_begin_for_writes()
   if writing then
      return
   end
   writing = true
   if stmt.begin ~= nil and is_sqlite() then
      stmt.begin:close()
      prepare_begin()
   end
end

function prepare_for_each_table(key)
   local definition = statements[key]
   local types = {select(2, unpack(definition))}
   for n = 1, sysbench.opt.tables do
      stmt[n][key], param[n][key] = prepare_bound(definition[1]:format(n), types)
   end
   if WRITES[key] then
      prepare_begin_for_writes()
   end
end

function prepare_point_selects()
   prepare_for_each_table("point_selects")
end

function prepare_simple_ranges()
   prepare_for_each_table("simple_ranges")
end

function prepare_sum_ranges()
   prepare_for_each_table("sum_ranges")
end

function prepare_order_ranges()
   prepare_for_each_table("order_ranges")
end

function prepare_distinct_ranges()
   prepare_for_each_table("distinct_ranges")
end

function prepare_index_updates()
   prepare_for_each_table("index_updates")
end

function prepare_non_index_updates()
   prepare_for_each_table("non_index_updates")
end

function prepare_delete_inserts()
   if drv ~= nil and is_redshift(drv:name()) then
      -- An identity column rejects the id of a deleted row.
      sysbench.opt.delete_inserts = 0
      return
   end
   prepare_for_each_table("deletes")
   prepare_for_each_table("inserts")
end

-- Closed statements are removed from the tables, so none is closed twice if preparing them again fails.
function close_statements()
   for n = 1, sysbench.opt.tables do
      for key, statement in pairs(stmt[n]) do
         statement:close()
         stmt[n][key] = nil
      end
   end
   for _, key in ipairs({"begin", "commit"}) do
      if stmt[key] ~= nil then
         stmt[key]:close()
         stmt[key] = nil
      end
   end
end

-- ----------------------------------------------------------------------------------- session

-- A client's share of the writes of --writes_before. Events begin when all clients are ready, so these writes are not
-- measured. Tests with reads then use modified tables.
local function write_before(percent)
   local opt = sysbench.opt
   prepare_begin()
   prepare_commit()
   prepare_index_updates()
   prepare_non_index_updates()
   prepare_delete_inserts()
   local function write()
      begin()
      execute_index_updates()
      execute_non_index_updates()
      execute_delete_inserts()
      commit()
   end
   for _ = 1, math.ceil(opt.tables * opt.table_size * percent / 100 / opt.threads) do
      local done, why = pcall(write)
      while not done do
         if type(why) ~= "table" or why.errcode ~= sysbench.error.RESTART_EVENT then
            error(why, 0)
         end
         done, why = pcall(write)
      end
   end
   close_statements()
   writing = false
end

-- Each script defines prepare_statements(), which calls the functions above.
function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()

   stmt, param = {}, {}
   for n = 1, sysbench.opt.tables do
      stmt[n], param[n] = {}, {}
   end
   -- Scripts that replace the options may lack this one.
   local percent = sysbench.opt.writes_before or 0
   if percent > 0 then
      write_before(percent)
   end
   prepare_statements()
end

function thread_done()
   close_statements()
   con:disconnect()
end

-- MySQL's error numbers for a lost connection.
local CONNECTION_LOST = {
   [2006] = true, -- CR_SERVER_GONE_ERROR
   [2011] = true, -- CR_TCP_CONNECTION
   [2013] = true, -- CR_SERVER_LOST
   [2055] = true, -- CR_SERVER_LOST_EXTENDED
}

-- The driver has reconnected before this hook, but statements end with their connection.
function sysbench.hooks.before_restart_event(errdesc)
   if CONNECTION_LOST[errdesc.sql_errno] then
      close_statements()
      prepare_statements()
   end
end

local events_done = 0

function check_reconnect()
   local every = sysbench.opt.reconnect
   if every > 0 then
      events_done = events_done + 1
      if events_done % every == 0 then
         close_statements()
         con:reconnect()
         prepare_statements()
      end
   end
end

-- ------------------------------------------------------------------------------------ events

-- Each of these functions draws one table for all its statements, even if it has none to execute. They
-- allocate nothing, because parameters are bound and strings are drawn into their buffers.

function begin()
   stmt.begin:execute()
end

function commit()
   stmt.commit:execute()
end

function execute_point_selects()
   local n = get_table_num()
   local count = sysbench.opt.point_selects
   if count > 0 then
      local statement, id = stmt[n].point_selects, param[n].point_selects[1]
      for _ = 1, count do
         id:set(get_id())
         statement:execute()
      end
   end
end

local function execute_ranges(key)
   local opt = sysbench.opt
   local n = get_table_num()
   local count = opt[key]
   if count > 0 then
      local statement, params = stmt[n][key], param[n][key]
      local first, last, width = params[1], params[2], opt.range_size - 1
      for _ = 1, count do
         local id = get_id()
         first:set(id)
         last:set(id + width)
         statement:execute()
      end
   end
end

function execute_simple_ranges()
   execute_ranges("simple_ranges")
end

function execute_sum_ranges()
   execute_ranges("sum_ranges")
end

function execute_order_ranges()
   execute_ranges("order_ranges")
end

function execute_distinct_ranges()
   execute_ranges("distinct_ranges")
end

function execute_index_updates()
   local n = get_table_num()
   local count = sysbench.opt.index_updates
   if count > 0 then
      local statement, id = stmt[n].index_updates, param[n].index_updates[1]
      for _ = 1, count do
         id:set(get_id())
         statement:execute()
      end
   end
end

function execute_non_index_updates()
   local n = get_table_num()
   local count = sysbench.opt.non_index_updates
   if count > 0 then
      local statement, params = stmt[n].non_index_updates, param[n].non_index_updates
      local c, id = params[1], params[2]
      for _ = 1, count do
         c:set_rand_str(C_TEMPLATE)
         id:set(get_id())
         statement:execute()
      end
   end
end

function execute_delete_inserts()
   local n = get_table_num()
   local count = sysbench.opt.delete_inserts
   if count > 0 then
      local delete, insert = stmt[n].deletes, stmt[n].inserts
      local deleted, row = param[n].deletes[1], param[n].inserts
      for _ = 1, count do
         local id = get_id()
         local k = get_id()
         deleted:set(id)
         row[1]:set(id)
         row[2]:set(k)
         row[3]:set_rand_str(C_TEMPLATE)
         row[4]:set_rand_str(PAD_TEMPLATE)
         delete:execute()
         insert:execute()
      end
   end
end

-- For the other bundled scripts. Globals could collide with those of scripts of other projects.
return {
   prepare_bound = prepare_bound,
   INT = INT,
   C = C,
   PAD = PAD,
   C_TEMPLATE = C_TEMPLATE,
   PAD_TEMPLATE = PAD_TEMPLATE,
}

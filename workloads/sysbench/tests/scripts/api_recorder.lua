-- A mock of sysbench's Lua API that executes nothing and records the calls of scripts.
--
-- Each state(…) holds the data of one thread: its globals, loaded modules, options and random
-- numbers. As in sysbench, sysbench.opt does not exist while a script is being read. Calls that a
-- database would refuse raise an error, for example a closed statement or connection, or the wrong
-- number of parameters.

local ffi = require("ffi")
local M = {}

-- --------------------------------------------------------------------------------- random numbers

-- This is not sysbench's generator. The same seed gives the same numbers to every script, which is enough.
local function new_random(seed)
   local state = seed

   local function draw(first, last)
      -- Arguments become unsigned 32-bit integers, as in a call to C.
      local a, b = math.floor(first) % 2^32, math.floor(last) % 2^32
      state = (state * 1103515245 + 12345) % 2^31
      return a + math.floor(state / 2^31 * (b - a + 1))
   end

   local rand = {
      default = draw, uniform = draw, gaussian = draw, special = draw, pareto = draw, zipfian = draw,
      unique = function() return draw(0, 2^32 - 1) end,
      uniform_double = function() return draw(0, 2^31 - 1) / 2^31 end,
   }
   function rand.string(template)
      return (template:gsub("[#@]", function(mark)
         return mark == "#" and string.char(draw(48, 57)) or string.char(draw(97, 122))
      end))
   end
   -- Draws as often as string() does, without making a string.
   function rand.skip(template)
      for i = 1, #template do
         if template:byte(i) == 35 then
            draw(48, 57)
         end
      end
   end
   return rand
end

-- ---------------------------------------------------------------------------------------- the SQL

local TYPES = {}
for number, name in ipairs({"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "TIME", "DATE",
                            "DATETIME", "TIMESTAMP", "CHAR", "VARCHAR"}) do
   TYPES[name] = number
end

local function count_marks(sql)
   return select(2, sql:gsub("%?", ""))
end

local function one_line(sql)
   sql = sql:gsub("%s+", " "):gsub("%s*([()])%s*", "%1")
   return (sql:gsub("^%s", ""):gsub("%s$", ""))
end

local Param = {}
Param.__index = Param

function Param:set(value)
   assert(type(value) ~= "table", "a parameter takes a number, a string or nil")
   assert(self.is_string == (type(value) == "string") or value == nil, "a value of another type than was bound")
   self.value = value
end

function Param:set_rand_str(template)
   assert(self.is_string, "set_rand_str on a number")
   assert(#template <= self.max_len, "the string is longer than was bound")
   if self.con.state.quiet then
      self.con.state.rand.skip(template)
      self.value = template
   else
      self.value = self.con.state.rand.string(template)
   end
end

local Statement = {}
Statement.__index = Statement

function Statement:bind_create(sql_type, max_len)
   local is_string = sql_type == TYPES.CHAR or sql_type == TYPES.VARCHAR
   assert(not is_string or max_len, "a string is bound with its greatest length")
   return setmetatable({is_string = is_string, max_len = max_len, con = self.con}, Param)
end

function Statement:bind_param(...)
   assert(select("#", ...) == self.marks,
          "the statement has " .. self.marks .. " marks, and " .. select("#", ...) .. " are bound: " .. self.sql)
   self.params = {...}
end

function Statement:execute()
   assert(not self.closed, "executed after it was closed: " .. self.sql)
   assert(self.connection_number == self.con.number, "prepared on an earlier connection: " .. self.sql)
   assert(self.marks == 0 or self.params, "executed without parameters: " .. self.sql)
   local state = self.con.state
   state.executed = state.executed + 1
   if state.quiet then
      return
   end
   local values = {}
   for i, param in ipairs(self.params or {}) do
      values[i] = tostring(param.value)
   end
   state.record("execute", self.sql .. (#values > 0 and " <- " .. table.concat(values, " ") or ""))
   if state.fail and state.fail(self.sql) then
      self.con:fail()
   end
end

function Statement:close()
   assert(not self.closed, "closed twice: " .. self.sql)
   self.closed = true
   self.con.open_statements = self.con.open_statements - 1
end

local Connection = {}
Connection.__index = Connection

function Connection:query(sql)
   assert(not self.closed, "a query over a closed connection: " .. sql)
   self.state.executed = self.state.executed + 1
   self.state.record("query", one_line(sql))
end

function Connection:prepare(sql)
   assert(not self.closed, "prepared over a closed connection: " .. sql)
   self.state.record("prepare", one_line(sql))
   self.open_statements = self.open_statements + 1
   return setmetatable({sql = one_line(sql), marks = count_marks(sql), con = self,
                        connection_number = self.number}, Statement)
end

function Connection:bulk_insert_init(sql)
   assert(not self.bulk, "a bulk insert begun within another")
   self.bulk = true
   self.state.record("bulk", one_line(sql))
end

function Connection:bulk_insert_next(values)
   assert(self.bulk, "a row without bulk_insert_init")
   self.state.record("row", values)
end

function Connection:bulk_insert_numbers(a, b)
   self:bulk_insert_next("(" .. a .. "," .. b .. ")")
end

function Connection:bulk_insert_done()
   assert(self.bulk, "bulk_insert_done without bulk_insert_init")
   self.bulk = nil
   self.state.record("bulk done", "")
end

function Connection:load_rows_init(table, columns)
   assert(not self.load, "a load begun within another")
   local _, commas = columns:gsub(",", "")
   self.load = {columns = commas + 1, row = {}}
   self.state.record("load", table .. "(" .. columns .. ")")
end

function Connection:load_rows_int(value)
   table.insert(self.load.row, tostring(value))
   if #self.load.row == self.load.columns then
      self.state.record("row", "(" .. table.concat(self.load.row, ", ") .. ")")
      self.load.row = {}
   end
end

function Connection:load_rows_text(text)
   self:load_rows_int("'" .. text .. "'")
end

function Connection:load_rows_string(format)
   self:load_rows_text(self.state.rand.string(format))
end

function Connection:load_rows_done()
   assert(#self.load.row == 0, "the last row is not whole")
   self.load = nil
   self.state.record("load done", "")
end

function Connection:reconnect()
   self.number = self.number + 1
   self.state.record("reconnect", "")
end

function Connection:disconnect()
   assert(self.open_statements == 0, self.open_statements .. " statements left open")
   self.closed = true
end

-- An ignorable error for a connection that the server dropped, after which the driver has reconnected.
function Connection:fail()
   self.number = self.number + 1
   error({errcode = 1, connection = self, query = "", sql_errno = 2013, sql_state = "HY000",
          sql_errmsg = "Lost connection to MySQL server during query"})
end

local function new_sql(state, driver_name)
   local driver = {}
   function driver.name() return driver_name end
   function driver.connect()
      return setmetatable({state = state, number = 1, open_statements = 0}, Connection)
   end
   return {
      driver = function() return driver end,
      type = TYPES,
      error = {NONE = 0, IGNORABLE = 1, FATAL = 2},
   }
end

-- -------------------------------------------------------------------------------------- the state

local GENERAL_OPTIONS = {threads = 1, events = 0, time = 10, percentile = 95, rand_type = "special"}

local function read_options(sysbench, given)
   local opt = {}
   for name, value in pairs(GENERAL_OPTIONS) do
      opt[name] = value
   end
   for name, definition in pairs(sysbench.cmdline.options or {}) do
      assert(type(definition[1]) == "string", "option without help: " .. name)
      -- An option without a default is a string.
      local value = definition[2]
      if value == nil then
         value = ""
      end
      opt[name] = value
   end
   for name, value in pairs(given) do
      assert(opt[name] ~= nil, "no option --" .. name)
      assert(type(value) == type(opt[name]), "--" .. name .. " is a " .. type(opt[name]))
      opt[name] = value
   end
   return opt
end

-- Reads a script as thread `tid` does. `settings`: directory, script, command, driver, options,
-- seed, tid, record(kind, text).
function M.state(settings)
   local state = {record = settings.record, rand = new_random(settings.seed or 1), executed = 0}
   local globals = setmetatable({}, {__index = _G})
   local loaded = {}

   local function load_script(name)
      local chunk = assert(loadfile(settings.directory .. "/" .. name .. ".lua"))
      setfenv(chunk, globals)
      return chunk()
   end

   globals._G = globals
   globals.ffi = ffi
   globals.print = function(...) state.record("print", table.concat({...}, "\t")) end
   globals.require = function(name)
      if not io.open(settings.directory .. "/" .. name .. ".lua") then
         return require(name)
      end
      if loaded[name] == nil then
         local value = load_script(name)
         loaded[name] = value == nil and true or value
      end
      return loaded[name]
   end
   local sysbench = {
      tid = settings.tid or 0,
      version = "1.1.0",
      error = {NONE = 0, RESTART_EVENT = 1},
      cmdline = {command = settings.command, PARALLEL_COMMAND = true, script_path = settings.script},
      hooks = {},
      rand = state.rand,
      sql = new_sql(state, settings.driver),
   }
   globals.sysbench = sysbench
   globals.thread_id = sysbench.tid

   load_script(settings.script)
   sysbench.opt = read_options(sysbench, settings.options or {})
   state.globals, state.sysbench = globals, sysbench
   return state
end

-- Runs a command that is not `run`: the script's own, or the global function of that name.
function M.command(state, name)
   local own = (state.sysbench.cmdline.commands or {})[name]
   local run = own and own[1] or state.globals[name]
   assert(run, "no command " .. name)
   return run()
end

-- Runs one event, and retries it after ignorable errors.
function M.event(state)
   while true do
      local done, problem = pcall(state.globals.event, state.sysbench.tid)
      if done then
         return problem
      end
      if type(problem) ~= "table" or problem.errcode ~= state.sysbench.error.RESTART_EVENT then
         error(problem, 0)
      end
      local hook = state.sysbench.hooks.before_restart_event
      if hook then
         hook(problem)
      end
   end
end

return M

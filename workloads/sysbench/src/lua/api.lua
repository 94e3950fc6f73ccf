-- The tables `sysbench` and `ffi.C` for scripts, implemented with the functions of the program. Called once per
-- interpreter with the program's table of functions, the interpreter's address, and the known facts about the run.

local interface, address, known = ...

-- Keeps the order of lines from scripts and from the program, also in a file.
io.stdout:setvbuf("line")

-- Writes a line at once, so that lines of several threads do not mix.
function print(...)
   local words = { ... }
   for place = 1, select("#", ...) do words[place] = tostring(words[place]) end
   io.write(table.concat(words, "\t") .. "\n")
end

-- In an experiment, scripts print nothing.
if known.is_quiet then
   function print() end
   function io.write() return io.stdout end
end

-- Scripts rely on this global.
ffi = require("ffi")

ffi.cdef [[
typedef enum { DB_ERROR_NONE, DB_ERROR_IGNORABLE, DB_ERROR_FATAL } sql_error_t;

typedef enum {
  SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT,
  SB_CNT_BYTES_READ, SB_CNT_BYTES_WRITTEN, SB_CNT_MAX
} sb_counter_type;

typedef enum {
  SQL_TYPE_NONE, SQL_TYPE_TINYINT, SQL_TYPE_SMALLINT, SQL_TYPE_INT, SQL_TYPE_BIGINT, SQL_TYPE_FLOAT, SQL_TYPE_DOUBLE,
  SQL_TYPE_TIME, SQL_TYPE_DATE, SQL_TYPE_DATETIME, SQL_TYPE_TIMESTAMP, SQL_TYPE_CHAR, SQL_TYPE_VARCHAR
} sql_bind_type_t;

typedef struct { const char *sname; const char *lname; } sql_driver;
typedef struct { uint32_t len; const char *ptr; } sql_value;
typedef struct sql_connection sql_connection;
typedef struct { sb_counter_type counter; uint32_t nrows; uint32_t nfields; sql_connection *connection; } sql_result;
struct sql_connection {
  sql_error_t error;
  int sql_errno;
  const char *sql_state;
  const char *sql_errmsg;
  sql_driver *driver;
  sql_result result;
  uint32_t failures;
  int failed_as;
};
typedef struct sql_no_rows sql_no_rows;
typedef struct { uint32_t room_bytes; uint32_t row_bytes; sql_value values[?]; } rumba_row;
typedef struct { sql_connection *connection; } sql_statement;
typedef struct { sql_bind_type_t type; int is_null; uint32_t data_len; uint32_t max_len; int64_t buffer[1]; } sql_int;
typedef struct { sql_bind_type_t type; int is_null; uint32_t data_len; uint32_t max_len; double buffer[1]; } sql_real;
typedef struct { sql_bind_type_t type; int is_null; uint32_t data_len; uint32_t max_len; char buffer[?]; } sql_text;
typedef struct sb_histogram sb_histogram_t;

typedef struct {
  sql_driver *(*driver)(void *, const char *);
  sql_connection *(*connect)(void *, sql_driver *);
  bool (*let_go)(void *, sql_connection *);
  void (*disconnect)(sql_connection *);
  int (*reconnect)(sql_connection *);
  void (*fail_again)(sql_connection *);
  int (*query)(sql_connection *, const char *, size_t);
  sql_statement *(*prepare)(sql_connection *, const char *, size_t);
  bool (*let_go_statement)(void *, sql_statement *);
  int (*bind)(sql_statement *, void **, uint32_t);
  int (*execute)(sql_statement *);
  int (*close)(sql_statement *);
  uint32_t (*row)(sql_connection *, rumba_row *);
  void (*forget_rows)(sql_connection *);
  int (*bulk_begin)(sql_connection *, const char *, size_t);
  int (*bulk_add)(sql_connection *, const char *, size_t);
  int (*bulk_add_numbers)(sql_connection *, int64_t, int64_t);
  int (*bulk_end)(sql_connection *);
  int (*load_begin)(sql_connection *, const char *, size_t, const char *, size_t);
  int (*load_int)(sql_connection *, int64_t);
  int (*load_text)(sql_connection *, const char *, size_t);
  int (*load_string)(sql_connection *, const char *, size_t);
  int (*load_end)(sql_connection *);
  bool (*more_events)(void *);
  void (*event_start)(void *);
  void (*event_stop)(void *);
  void (*count)(void *, int, sb_counter_type, uint64_t);
  uint64_t (*rand_uint64)(void *);
  double (*rand_double)(void *);
  uint32_t (*rand_default)(void *, uint32_t, uint32_t);
  uint32_t (*rand_uniform)(void *, uint32_t, uint32_t);
  uint32_t (*rand_gaussian)(void *, uint32_t, uint32_t);
  uint32_t (*rand_special)(void *, uint32_t, uint32_t);
  uint32_t (*rand_pareto)(void *, uint32_t, uint32_t);
  uint32_t (*rand_zipfian)(void *, uint32_t, uint32_t);
  double (*rand_wide)(void *, int, double, double);
  uint32_t (*rand_unique)(void *);
  void (*rand_string)(void *, const char *, size_t, char *);
  uint32_t (*rand_varstring)(void *, char *, uint32_t, uint32_t);
  sb_histogram_t *(*histogram_new)(void *, size_t, double, double);
  void (*histogram_let_go)(void *, sb_histogram_t *);
  void (*histogram_update)(sb_histogram_t *, double);
  void (*histogram_print)(const sb_histogram_t *);
  void (*alert)(void *, const char *, size_t);
  const char *(*seldom)(void);
  const char *(*legacy)(void);
  const char *(*own)(void);
} rumba_interface;
]]

local api = ffi.cast("const rumba_interface *", interface)
local this = ffi.cast("void *", address)

sysbench = {
   tid = known.tid,
   version = known.version,
   version_string = known.version_string,
   error = { NONE = 0, RESTART_EVENT = 1 },
   opt = {},
   hooks = {},
   cmdline = {
      argv = known.argv,
      command = known.command,
      script_path = known.script_path,
      ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6,
      ARG_FILE = 7, ARG_MAX = 8,
      PARALLEL_COMMAND = true,
   },
   rand = {},
   sql = {},
   db = { DB_ERROR_NONE = 0, DB_ERROR_RESTART_TRANSACTION = 1, DB_ERROR_FAILED = 2 },
   test = { path = known.script_path },
   histogram = {},
}

-- The functions that scripts call as `ffi.C`. Those of the program are not in a shared library, so this table has priority.
local exported = {}
local real_ffi = ffi
local c_library = setmetatable(exported, { __index = real_ffi.C })
ffi = setmetatable({ C = c_library }, { __index = real_ffi })
package.loaded.ffi = ffi

-- ------------------------------------------------------------------ random numbers

local rand_uint64, rand_double, rand_default = api.rand_uint64, api.rand_double, api.rand_default
local rand_uniform, rand_gaussian, rand_special = api.rand_uniform, api.rand_gaussian, api.rand_special
local rand_pareto, rand_zipfian, rand_unique = api.rand_pareto, api.rand_zipfian, api.rand_unique
local rand_wide = api.rand_wide
local rand_string, rand_varstring = api.rand_string, api.rand_varstring

function sysbench.rand.uniform_uint64() return rand_uint64(this) end
function sysbench.rand.uniform_double() return rand_double(this) end

-- Numbers of 32 bits are the fastest. For a range with a higher end, Lua's numbers are used, which are exact up to 2^53. A
-- conversion to 32 bits would silently change the range.
local NARROW, WIDE = 4294967295, 9007199254740992

local function wide(kind, a, b)
   if not (b <= WIDE and a >= -WIDE) then
      error("sysbench.rand: a range must be within -9007199254740992 and 9007199254740992 (2^53)", 3)
   end
   -- Rounds down as a conversion to 32 bits does, because select_random_ranges divides a table into fractional ranges.
   return rand_wide(this, kind, a - a % 1, b - b % 1)
end

function sysbench.rand.default(a, b) return b > NARROW and wide(0, a, b) or rand_default(this, a, b) end
function sysbench.rand.uniform(a, b) return b > NARROW and wide(1, a, b) or rand_uniform(this, a, b) end
function sysbench.rand.gaussian(a, b) return b > NARROW and wide(2, a, b) or rand_gaussian(this, a, b) end
-- sysbench 1.1 lacks this function, so a script that lists the functions must not find it.
local function special(a, b) return b > NARROW and wide(3, a, b) or rand_special(this, a, b) end
setmetatable(sysbench.rand, { __index = { special = special } })
function sysbench.rand.pareto(a, b) return b > NARROW and wide(4, a, b) or rand_pareto(this, a, b) end
function sysbench.rand.zipfian(a, b) return b > NARROW and wide(5, a, b) or rand_zipfian(this, a, b) end
function sysbench.rand.unique() return rand_unique(this) end

-- A shared buffer for the strings of a script, so that only the string itself is allocated.
local room, room_bytes = real_ffi.new("char[?]", 64), 64
local function at_least(bytes)
   if bytes > room_bytes then
      room, room_bytes = real_ffi.new("char[?]", bytes), bytes
   end
   return room
end

function sysbench.rand.string(format)
   local length = #format
   local buffer = at_least(length)
   rand_string(this, format, length, buffer)
   return real_ffi.string(buffer, length)
end

function sysbench.rand.varstring(least, most)
   assert(least <= most, "sysbench.rand.varstring: the minimum length exceeds the maximum")
   assert(most > 0, "sysbench.rand.varstring: the maximum length must be positive")
   local buffer = at_least(most)
   return real_ffi.string(buffer, rand_varstring(this, buffer, least, most))
end

function exported.sb_rand_str(format, buffer) rand_string(this, format, #format, buffer) end
function exported.sb_rand_varstr(buffer, least, most) return rand_varstring(this, buffer, least, most) end
for _, name in ipairs {
   "default", "uniform", "gaussian", "special", "pareto", "zipfian", "unique", "uniform_uint64", "uniform_double",
} do
   exported["sb_rand_" .. name] = sysbench.rand[name]
end

-- The names of sysbench before 1.0.
sb_rand, sb_rand_str = sysbench.rand.default, sysbench.rand.string
sb_rand_uniform, sb_rand_gaussian = sysbench.rand.uniform, sysbench.rand.gaussian
sb_rand_special, sb_rand_pareto = sysbench.rand.special, sysbench.rand.pareto

function sb_rnd() return tonumber(rand_uint64(this) % 0x100000000ULL) end

-- The next unique number within the range. A small range contains few of them.
function sb_rand_uniq(least, most)
   least, most = least or 0, most or NARROW
   if most > NARROW then
      error("sb_rand_uniq: unique numbers have 32 bits, so the greatest is 4294967295, not " .. tostring(most), 2)
   end
   local drawn
   repeat drawn = rand_unique(this) until drawn >= least and drawn <= most
   return drawn
end

thread_id, test = sysbench.tid, sysbench.test.path
mysql_table_engine, myisam_max_rows = mysql_table_engine or "innodb", 1000000

-- ------------------------------------------------------------------ SQL

-- A script's `__gc` can run at every allocation, for example of an address or a string. It can use the same connection: send
-- statements, bind, close. Code here therefore allocates nothing between a call that returns memory of the program and the
-- call that invalidates it. Otherwise it uses memory of Lua.

local query, prepare, execute = api.query, api.prepare, api.execute
local bind, close = api.bind, api.close
local next_row, forget_rows = api.row, api.forget_rows

local function address(of)
   return tonumber(real_ffi.cast("uintptr_t", real_ffi.cast("void *", of)))
end

-- The bound parameters of each connection's statements, by their addresses. A script may hold no other reference to them,
-- and may hold a statement in several handles.
local bound = {}

-- A handle was collected. The last handle of a connection also frees the connection and the bound parameters.
local function let_go(connection)
   if api.let_go(this, connection) then bound[address(connection)] = nil end
end

local function let_go_statement(statement)
   local connection = address(statement.connection)
   if api.let_go_statement(this, statement) then bound[connection] = nil end
end

local text, copy, gc = real_ffi.string, real_ffi.copy, real_ffi.gc

local types = {
   NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8, DATETIME = 9,
   TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}
local errors = { NONE = 0, IGNORABLE = 1, FATAL = 2 }
sysbench.sql.type, sysbench.sql.error = types, errors

-- The outcomes of the program's calls.
local DONE, ROWS = 0, 1

-- A connection's last failure: severity, number, state and message, all of the same failure.
local function failure(connection)
   local failures, kind, number, state, words
   repeat
      failures = connection.failures
      kind, number = connection.failed_as, connection.sql_errno
      state, words = text(connection.sql_state), text(connection.sql_errmsg)
   until failures == connection.failures
   return kind, number, state, words
end

-- Raises the error of a connection's last call: a table that restarts the event, or a text that ends the run.
local function raise(connection, statement)
   local kind, number, state, words = failure(connection)
   local failed = {
      connection = connection, query = statement, sql_errno = number, sql_state = state, sql_errmsg = words,
   }
   local is_ignorable = sysbench.hooks.sql_error_ignorable
   if kind == errors.IGNORABLE
      or type(is_ignorable) == "function" and is_ignorable(failed) then
      failed.errcode = sysbench.error.RESTART_EVENT
      error(failed, 3)
   end
   error(string.format("SQL error, errno = %d, state = '%s': %s", number, state, words), 3)
end

-- The buffer for a row. A reader takes it, so that a nested reader cannot use it at the same time.
local row_room
local row, value_bytes = real_ffi.typeof("rumba_row"), real_ffi.sizeof("sql_value")
local first_room_bytes, most_kept_bytes = 1024, 65536

local function room_of(bytes)
   local values = math.ceil(bytes / value_bytes)
   local made = row(values)
   made.room_bytes = values * value_bytes
   return made
end

-- Returns the next row of a connection's result and its number of columns; no row after the last.
local function fetch(connection)
   local own = row_room or room_of(first_room_bytes)
   row_room = nil
   local columns = next_row(connection, own)
   while own.row_bytes > own.room_bytes do
      own = room_of(own.row_bytes)
      columns = next_row(connection, own)
   end
   local values
   if columns > 0 then
      values = {}
      for column = 0, columns - 1 do
         local value = own.values[column]
         if value.ptr ~= nil then values[column + 1] = text(value.ptr, value.len) end
      end
   end
   if own.room_bytes <= most_kept_bytes then row_room = own end
   return values, columns
end

-- The result of a statement without rows: a null pointer, as in sysbench. It equals nil and counts as true, so that
-- assert(con:query("CREATE TABLE …")) succeeds. It has a separate type, because access to a field of a null sql_result
-- would end the program with SIGSEGV.
local no_rows = real_ffi.cast("sql_no_rows *", nil)
real_ffi.metatype("sql_no_rows", {
   __index = function(_, name)
      error("the statement returned no rows, so its result has no '" .. tostring(name)
         .. "': compare the result with nil first", 2)
   end,
   __tostring = function() return "<sql_result>" end,
})

local connections = {}

function connections:query(sql)
   local outcome = query(self, sql, #sql)
   if outcome == DONE then return no_rows end
   if outcome == ROWS then return self.result end
   raise(self, sql)
end

function connections:query_row(sql)
   local outcome = query(self, sql, #sql)
   if outcome == DONE then return nil end
   if outcome ~= ROWS then raise(self, sql) end
   local values, columns = fetch(self)
   if values == nil then return nil end
   return unpack(values, 1, columns)
end

function connections:prepare(sql)
   local statement = prepare(self, sql, #sql)
   if statement == nil then raise(self, sql) end
   return gc(statement, let_go_statement)
end

function connections:disconnect()
   api.disconnect(self)
   return true
end

real_ffi.metatype("sql_connection", {
   __index = connections,
   __tostring = function() return "<sql_connection>" end,
})

-- A parameter has a buffer of numbers or of characters, depending on its type. Scripts can write to the buffer.
local ints, reals, texts = {}, {}, {}

function ints:set(value)
   if value == nil then self.is_null = 1 return end
   self.is_null, self.buffer[0] = 0, value
end

reals.set = ints.set

function texts:set(value)
   if value == nil then self.is_null = 1 return end
   local length = #value
   if length > self.max_len then length = self.max_len end
   copy(self.buffer, value, length)
   self.is_null, self.data_len = 0, length
end

function texts:set_rand_str(format)
   local length = #format
   if length > self.max_len then length = self.max_len end
   self.is_null = 0
   rand_string(this, format, length, self.buffer)
   self.data_len = length
end

local function takes_no_string(self)
   error("set_rand_str: a parameter of type " .. tonumber(self.type) .. " takes no string", 2)
end
ints.set_rand_str, reals.set_rand_str = takes_no_string, takes_no_string

-- Lua allocates and collects parameters, so it knows the length of the buffer.
local function parameter(name, methods)
   return real_ffi.metatype(name, { __index = methods, __tostring = function() return "<sql_param>" end })
end
local int, real, letters = parameter("sql_int", ints), parameter("sql_real", reals), parameter("sql_text", texts)
local without_buffer = real_ffi.sizeof("sql_text", 0)

-- The program cannot check the type of a parameter.
local istype = real_ffi.istype
local function is_parameter(given) return istype(int, given) or istype(real, given) or istype(letters, given) end

-- The type in which each type is sent.
local carried = {
   [types.TINYINT] = types.BIGINT, [types.SMALLINT] = types.BIGINT, [types.INT] = types.BIGINT,
   [types.BIGINT] = types.BIGINT, [types.FLOAT] = types.DOUBLE, [types.DOUBLE] = types.DOUBLE,
   [types.CHAR] = types.VARCHAR, [types.VARCHAR] = types.VARCHAR,
}

local statements = {}

function statements:bind_create(kind, most)
   local carrier = carried[tonumber(kind)]
   if carrier == nil then error("Unsupported argument type: " .. tostring(kind), 2) end
   if carrier == types.VARCHAR and type(most) ~= "number" then
      error("bind_create: a string needs its maximum length", 2)
   end
   local made
   if carrier == types.VARCHAR then
      made = letters(most)
      made.max_len = real_ffi.sizeof(made) - without_buffer
   else
      made = carrier == types.DOUBLE and real() or int()
   end
   made.type = carrier
   return made
end

function statements:bind_param(...)
   local count = select("#", ...)
   if count < 1 then return nil end
   local given = { ... }
   for at = 1, count do
      if not is_parameter(given[at]) then error("bind_param: no parameter in place " .. at, 2) end
   end
   local parameters_of, connection, statement =
      real_ffi.new("void *[?]", count, given), address(self.connection), address(self)
   if bound[connection] == nil then
      local made = {}
      bound[connection] = bound[connection] or made
   end
   -- Nothing is allocated from here on, so that the program and this table refer to the same parameters.
   bound[connection][statement] = given
   local outcome = bind(self, parameters_of, count)
   if outcome ~= DONE then raise(self.connection, "<prepared statement>") end
   return outcome
end

function statements:execute()
   local outcome = execute(self)
   if outcome == DONE then return no_rows end
   local connection = self.connection
   if outcome == ROWS then return connection.result end
   raise(connection, "<prepared statement>")
end

function statements:next_result() return no_rows end

function statements:close()
   -- The program uses the parameters until it has closed the statement.
   local outcome = close(self)
   local of_connection = bound[address(self.connection)]
   if of_connection ~= nil then of_connection[address(self)] = nil end
   return outcome
end

real_ffi.metatype("sql_statement", { __index = statements, __tostring = function() return "<sql_statement>" end })

local results = {}

function results:fetch_row() return (fetch(self.connection)) end

function results:free()
   forget_rows(self.connection)
   return true
end

real_ffi.metatype("sql_result", { __index = results, __tostring = function() return "<sql_result>" end })

local drivers = {}

function drivers:connect()
   local connection = gc(api.connect(this, self), let_go)
   if tonumber(connection.error) ~= errors.NONE then
      error("connection creation failed: " .. text(connection.sql_errmsg), 2)
   end
   return connection
end

function drivers:name() return text(self.sname) end

real_ffi.metatype("sql_driver", { __index = drivers, __tostring = function() return "<sql_driver>" end })

function sysbench.sql.driver(name)
   local driver = api.driver(this, name)
   if driver == nil then error("failed to initialize the DB driver", 2) end
   return driver
end

-- ------------------------------------------------------------------ counters

local count = api.count
function exported.sb_counter_inc(thread, counter) count(this, thread, counter, 1) end
function exported.sb_counter_add(thread, counter, number) count(this, thread, counter, number) end

-- ------------------------------------------------------------------ events

local more_events, event_start, event_stop = api.more_events, api.event_start, api.event_stop
function exported.sb_more_events() return more_events(this) end
function exported.sb_event_start() event_start(this) end
function exported.sb_event_stop() event_stop(this) end

-- Runs a client's events. A script can replace this function.
function thread_run(thread)
   local restart = sysbench.error.RESTART_EVENT
   while more_events(this) do
      event_start(this)
      local done, result = pcall(event, thread)
      while not done do
         if type(result) ~= "table" or result.errcode ~= restart then error(result, 0) end
         local hook = sysbench.hooks.before_restart_event
         if hook then hook(result) end
         done, result = pcall(event, thread)
      end
      -- An event that returns a true value is the last.
      if result then return end
      event_stop(this)
   end
end

-- ------------------------------------------------------------------ rarely used functions

-- These are other functions of connections, histograms, options and commands of scripts, reports, finalizers, and the
-- functions of sysbench 0.5. They are loaded at the first call, so that hundreds of clients that only run events do not
-- need memory for them.
local load, newproxy = loadstring, newproxy
local set_metatable, metatable_of = debug.setmetatable, debug.getmetatable
local function once(source)
   local loaded
   return function()
      loaded = loaded or load(text(source()), "=sysbench")(
         api, real_ffi, connections, raise, DONE, no_rows, this, newproxy, set_metatable, metatable_of)
      return loaded
   end
end

local rest, legacy, more = once(api.seldom), once(api.legacy), once(api.own)

-- An extension of sysbench: a script's own measurements, and keys and values.
rumba = setmetatable({}, { __index = function(own, name) return more()(own, name) end })

setmetatable(connections, { __index = function(_, name)
   rest()
   local method = rawget(connections, name)
   -- This is LuaJIT's own message.
   if method == nil then error("'struct sql_connection' has no member named '" .. tostring(name) .. "'", 2) end
   return method
end })

local function later(place, found, ...)
   for _, name in ipairs { ... } do
      place[name] = function(...) return found()[name](...) end
   end
end

later(sysbench.cmdline, rest, "takes", "command_defined", "command_parallel", "print_test_options", "call_command")
later(sysbench, rest, "report_default", "report_csv", "report_json")
function sysbench.histogram.new(...) return rest().histogram(...) end
later(ffi, rest, "gc", "metatype")
later(_G, rest, "newproxy")
later(debug, rest, "setmetatable", "getmetatable")

later(sysbench.db, legacy, "connect", "disconnect", "query", "bulk_insert_init", "bulk_insert_next", "bulk_insert_done",
   "prepare", "bind_param", "bind_result", "execute", "close", "store_results", "free_results")
for name, value in pairs(sysbench.db) do
   _G[type(value) == "function" and "db_" .. name or name] = value
end

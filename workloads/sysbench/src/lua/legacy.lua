-- The functions of sysbench 0.5, which 1.0 still supports. Each interpreter has one connection, which is opened at its first
-- use. Statements take their values from a table of the script when they are executed. `api.lua` loads this file when a
-- script calls one of these functions. The file returns the functions for `sysbench.db`.

local types = sysbench.sql.type
local db = {}

-- The interpreter's connection.
local own

function db.connect()
   local driver = sysbench.sql.driver()
   db_driver = driver:name()
   own = driver:connect()
end

function db.disconnect()
   if own ~= nil then own:disconnect() end
   own = nil
end

local function connection()
   if own == nil then db.connect() end
   return own
end

local function connected()
   if own == nil then error("Uninitialized database connection", 3) end
   return own
end

-- These are tail calls, so that errors have the script's line.
function db.query(sql) return connection():query(sql) end

function db.bulk_insert_init(sql) return connection():bulk_insert_init(sql) end
function db.bulk_insert_next(row) return connected():bulk_insert_next(row) end
function db.bulk_insert_done() return connected():bulk_insert_done() end

-- ------------------------------------------------------------------ prepared statements

local statements, results = {}, {}

local function is_of(kind, value, what)
   if getmetatable(value) ~= kind then error("bad argument #1 (" .. what .. " expected)", 3) end
   return value
end

function db.prepare(sql) return setmetatable({ statement = connection():prepare(sql) }, statements) end

-- The keys of a bound table, in order. The type of each value is the type of its parameter or column.
local function places(values)
   if type(values) ~= "table" then error("table was expected", 3) end
   local keys = {}
   for key, value in pairs(values) do
      local kind = type(value)
      if kind ~= "number" and kind ~= "string" then error("Unsupported variable type: " .. kind, 3) end
      keys[#keys + 1] = key
   end
   if #keys == 0 then error("table is empty", 3) end
   table.sort(keys)
   return keys
end

function db.bind_param(bound, values)
   connected()
   is_of(statements, bound, "prepared statement")
   bound.keys, bound.values, bound.parameters, bound.room = places(values), values, {}, {}
   for place, key in ipairs(bound.keys) do
      if type(values[key]) == "number" then
         bound.parameters[place] = bound.statement:bind_create(types.BIGINT)
      else
         bound.room[place] = 0
      end
   end
   bound.is_bound = false
end

-- As in sysbench, no function copies rows of prepared statements into the table.
function db.bind_result(bound, values)
   connected()
   is_of(statements, bound, "prepared statement")
   places(values)
end

-- Enlarges a parameter for a string of this length. Its size at least doubles, so that it is rarely bound again.
local function make_room(bound, place, bytes)
   local room = bound.room[place]
   if room > 0 and bytes <= room then return end
   room = math.max(64, 2 * bytes)
   bound.parameters[place], bound.room[place] = bound.statement:bind_create(types.VARCHAR, room), room
   bound.is_bound = false
end

-- Copies the current values of the script's table.
local function take_values(bound)
   for place, key in ipairs(bound.keys) do
      local value = bound.values[key]
      if bound.room[place] == nil then
         value = tonumber(value)
      else
         value = value ~= nil and tostring(value) or nil
         make_room(bound, place, value and #value or 0)
      end
      bound.parameters[place]:set(value)
   end
   if not bound.is_bound then
      bound.statement:bind_param(unpack(bound.parameters, 1, #bound.keys))
      bound.is_bound = true
   end
end

function db.execute(bound)
   connected()
   is_of(statements, bound, "prepared statement")
   if bound.keys then take_values(bound) end
   return setmetatable({ result = bound.statement:execute() }, results)
end

-- Results are stored when the statement is executed, so this function has no work.
function db.store_results(found)
   connected()
   is_of(results, found, "result set")
end

function db.free_results(found)
   connected()
   is_of(results, found, "result set")
   if found.result ~= nil then found.result:free() end
   found.result = nil
end

function db.close(bound)
   connected()
   is_of(statements, bound, "prepared statement").statement:close()
end

return db

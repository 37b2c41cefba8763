-- Make facts for a sale that Redis lost, so that its buyers hear "unavailable" and
-- not "not started".
--
-- KEYS[1] activity, hash
-- ARGV product_id, price, stock_limit, start_ms, end_ms, max_quantity, eligible "0"
--      or "1", epoch: what MySQL has of it
--
-- Returns { status, state }: there (it has facts, nothing was written) or lost
-- (state is "lost" now).  Nothing is sold by such facts; restore.lua replaces them.
--
-- Errors: "SECKILL ..." for bad arguments, and Redis' own.

local call, find = redis.call, string.find
local facts = KEYS[1]
local names = { "product_id", "price", "stock_limit", "start_ms", "end_ms", "max_quantity",
                "eligible", "epoch" }

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

if #KEYS ~= 1 or #ARGV ~= #names then
  return refuse("lost takes a key and eight arguments")
end
for i, name in ipairs(names) do
  if not find(ARGV[i], name == "price" and "^%d+%.?%d*$" or "^%d+$") then
    return refuse(name .. " is bad")
  end
end

local state = call("HGET", facts, "state")
if state then
  return { "there", string.sub(state, 1, 11) }
end

local time = call("TIME")
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local given = { "state", "lost", "seq", "0", "rev", string.format("%d", now_ms) }
for i, name in ipairs(names) do
  given[#given + 1] = name
  given[#given + 1] = ARGV[i]
end
call("HSET", facts, unpack(given))

return { "lost", "lost" }

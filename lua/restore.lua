-- Open a sale that was rebuilt from MySQL: the last step, after its buyers.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream
-- ARGV product_id, price, stock_limit, start_ms, end_ms, max_quantity, eligible
--      "0" or "1", epoch, state "open" or "closed", restocked, released: the facts;
--      stock, units left; buyers, how many order_users must hold; rev, at least;
--      last_ms, the time in the ids of the stream that is gone, as far as known
--
-- Returns { rev, now_ms }.  rev is above any that was there before: a new one is
-- taken from the clock, as the old one may be lost.  A stream that is made anew
-- goes on behind last_ms and the clock: its ids never go back.
--
-- A sale for registered users is whole only with some of them: eligible_had says
-- so whether they are there or lost.
--
-- Errors: "SECKILL ..." for bad arguments, facts that are there, buyers that are
-- not all there; and Redis' own.  All is proved before the first write.

local GROUP = "seckilld"

local call, find = redis.call, string.find
local facts, stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local names = { "product_id", "price", "stock_limit", "start_ms", "end_ms", "max_quantity",
                "eligible", "epoch", "state", "restocked", "released" }

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

if #KEYS ~= 4 or #ARGV ~= 15 then
  return refuse("restore takes four keys and fifteen arguments")
end
if not find(ARGV[1], "^[1-9]%d*$") or not find(ARGV[2], "^%d+%.?%d*$") then
  return refuse("product_id or price is bad")
end
for _, i in ipairs({ 3, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15 }) do
  if not number(ARGV[i]) then
    return refuse((names[i] or "stock, buyers, rev or last_ms") .. " is not a number")
  end
end
if not find(ARGV[7], "^[01]$") or not (ARGV[9] == "open" or ARGV[9] == "closed") then
  return refuse("eligible or state is bad")
end
if number(ARGV[12]) > number(ARGV[3]) then
  return refuse("more units are left than the limit")
end

local state = call("HGET", facts, "state")
if call("EXISTS", stock) > 0 or state == "open" or state == "settled" then
  return refuse("the sale is there")
end
if call("SCARD", buyers) ~= number(ARGV[13]) then
  return refuse("order_users does not hold the buyers of MySQL")
end

local grouped, there = false, call("EXISTS", orders) == 1
if there then
  for _, group in ipairs(call("XINFO", "GROUPS", orders)) do
    for i = 1, #group, 2 do
      grouped = grouped or (group[i] == "name" and group[i + 1] == GROUP)
    end
  end
end

local time = call("TIME")
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local rev = math.max(number(ARGV[14]), now_ms)

local given = { "rev", string.format("%d", rev), "seq", "0", "buyers_extra", ARGV[13] }
if ARGV[7] == "1" then
  given[#given + 1], given[#given + 2] = "eligible_had", "1"
end
for i, name in ipairs(names) do
  given[#given + 1] = name
  given[#given + 1] = ARGV[i]
end

if not grouped then
  call("XGROUP", "CREATE", orders, GROUP, "0", "MKSTREAM")
end
if not there then
  call("XSETID", orders, string.format("%d-0", math.max(now_ms, number(ARGV[15])) + 1))
end
call("SET", stock, ARGV[12])
call("HDEL", facts, "was", "expire_ms")
call("HSET", facts, unpack(given))
-- an expiry that somebody gave them would take the sale down again
call("PERSIST", facts)
call("PERSIST", orders)
call("PERSIST", buyers)

return { rev, now_ms }

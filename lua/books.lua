-- What Redis holds of a sale at one instant; writes nothing.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] orders, stream
--
-- Returns { now_ms, facts, stock left, last id, last id delivered, pending }:
-- facts as HGETALL gives them; numbers and ids as text, "" for what is not
-- there.  The last id delivered is that of the group.

local GROUP = "seckilld"

local call = redis.call
local facts, stock, orders = KEYS[1], KEYS[2], KEYS[3]

-- a value of one of XINFO's flat lists
local function value(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then
      return tostring(list[i + 1])
    end
  end
  return ""
end

local time = call("TIME")
local last, delivered, pending = "", "", ""

if call("EXISTS", orders) == 1 then
  last = value(call("XINFO", "STREAM", orders), "last-generated-id")

  for _, group in ipairs(call("XINFO", "GROUPS", orders)) do
    if value(group, "name") == GROUP then
      delivered, pending = value(group, "last-delivered-id"), value(group, "pending")
    end
  end
end

return { string.format("%d", tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)),
         call("HGETALL", facts), call("GET", stock) or "", last, delivered, pending }

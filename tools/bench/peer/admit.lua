-- One purchase of the Lua peer, in one call.
--
-- KEYS[1] stock, string   KEYS[2] order_users, set   KEYS[3] orders, stream
-- KEYS[4] result of the user, or with a session its key
-- ARGV activity, user ("" with a session), request_id, accepted_ms
--
-- Returns "1<user>" accepted, "2<result or nothing>" repeat, "3" sold out,
-- "0" no such session.

local call = redis.call
local stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3]
local user = ARGV[2]

if user == "" then
  user = call("GET", KEYS[4])
  if not user then
    return "0"
  end
end

if tonumber(call("GET", stock) or 0) < 1 then
  if call("SISMEMBER", buyers, user) == 0 then
    return "3"
  end
elseif call("SADD", buyers, user) == 1 then
  call("DECR", stock)
  call("XADD", orders, "*", "v", "1", "user", user, "activity", ARGV[1], "quantity", "1",
       "accepted_ms", ARGV[4], "request_id", ARGV[3])
  return "1" .. user
end

return "2" .. (ARGV[2] ~= "" and call("GET", KEYS[4]) or "")

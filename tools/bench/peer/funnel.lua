-- The Lua peer: the same funnel as a good OpenResty developer writes it.  One
-- script call per purchase over a pool of kept connections to Redis; window in a
-- worker's cache, sold out and the users' limits in a shared dictionary; signed
-- tokens verified here.  It gives the module's answers, except that after the
-- sell-out it refuses everybody at once, buyers and bad tokens too: that is
-- cheaper than to tell them apart.

local cjson = require "cjson.safe"
local lrucache = require "resty.lrucache"
local token = require "token"

local have_resty, redis = pcall(require, "resty.redis")
if not have_resty then
  redis = require "nginx.redis"
end

local ngx = ngx
local byte, find, floor, sub = string.byte, string.find, math.floor, string.sub
local var, header, null = ngx.var, ngx.header, ngx.null

local TIMEOUT_MS, KEEP_MS, POOL = 200, 60000, 512
local FACTS_SECONDS, SOLD_OUT_SECONDS, LIMIT_SECONDS = 1, 1, 1
local BUY_MAX = 1024

local funnel = {}
local sales, facts_cache, script, sha, address

local function read_file(name)
  local file = assert(io.open(name))
  local text = file:read("*a")
  file:close()
  return text
end

-- here: folder of the bench   queue_key: 64 hex digits, as in seckill:control
function funnel.init(here, redis_address, key_file, queue_key)
  script = read_file(here .. "/peer/admit.lua")
  address = redis_address
  sales = ngx.shared.sales
  facts_cache = assert(lrucache.new(1000))
  token.init(read_file(key_file), (queue_key:gsub("%x%x", function(pair)
    return string.char(tonumber(pair, 16))
  end)))
end

local function now_ms()
  return floor(ngx.now() * 1000)
end

local function answer(status, code, message, data, request_id)
  local body = '{"code":' .. code .. ',"message":"' .. message .. '","data":' .. data
               .. ',"server_time_ms":' .. now_ms() .. "}"

  ngx.status = status
  header["Content-Type"] = "application/json; charset=utf-8"
  header["Content-Length"] = #body
  header["Cache-Control"] = "no-store"
  header["X-Request-ID"] = request_id or var.http_x_request_id or var.request_id
  ngx.print(body)
end

local function unauthorized()
  header["WWW-Authenticate"] = "Bearer"
  return answer(401, 40100, "未登录", "null")
end

local function limited()
  header["Retry-After"] = LIMIT_SECONDS
  return answer(200, 40003, "请求过于频繁", "null")
end

local function sold_out()
  return answer(200, 40005, "商品已抢完", "null")
end

local function busy()
  header["Retry-After"] = 1
  return answer(503, 50302, "系统繁忙，请稍后再试", "null")
end

local function bearer()
  local value = var.http_authorization
  if value and #value > 7 and #value < 8192 and find(value, "Bearer ", 1, true) == 1 then
    return sub(value, 8)
  end
end

-- the body is optional; anything but one unit is refused
local function body_is_good()
  local length = var.http_content_length
  if not length or length == "0" then
    return true
  end
  if tonumber(length) > BUY_MAX then
    return false
  end

  ngx.req.read_body()
  local body = cjson.decode(ngx.req.get_body_data() or "")
  return type(body) == "table" and (body.quantity == nil or body.quantity == 1)
end

-- { start_ms, end_ms } at most a second old; false: no such activity
local function facts_of(connection, activity)
  local facts = facts_cache:get(activity)
  if facts ~= nil then
    return facts
  end

  local reply, err = connection:hmget("seckill:activity:{" .. activity .. "}",
                                      "start_ms", "end_ms", "state")
  if not reply then
    return nil, err
  end

  local start_ms, end_ms = tonumber(reply[1]), tonumber(reply[2])
  facts = reply[3] ~= null and start_ms and end_ms and { start_ms, end_ms } or false
  facts_cache:set(activity, facts, FACTS_SECONDS)
  return facts
end

local function call_script(connection, ...)
  if not sha then
    sha = connection:script("load", script)
  end

  local reply, err = connection:evalsha(sha, 4, ...)
  if not reply and err and find(err, "NOSCRIPT", 1, true) then
    sha = connection:script("load", script)
    reply, err = connection:evalsha(sha, 4, ...)
  end
  return reply, err
end

local function repeated(activity, user, result, request_id)
  local data = '{"queue_token":"' .. token.queue(activity, user) .. '"'
  local order = result ~= "" and cjson.decode(result)

  if not order then
    data = data .. ',"state":"queueing","poll_after_ms":500}'
  elseif order.success then
    data = data .. ',"state":"success","order_id":' .. order.order_id .. ',"order_no":"'
           .. order.order_no .. '"}'
  else
    data = data .. ',"state":"failed"}'
  end
  return answer(200, 40004, "您已参与过该活动", data, request_id)
end

local function tell(activity, user, reply, request_id)
  local verdict, rest = byte(reply), sub(reply, 2)

  if verdict == 49 then -- "1"
    return answer(200, 0, "排队中", '{"queue_token":"' .. token.queue(activity, rest)
                  .. '","state":"queueing","activity":"' .. activity
                  .. '","quantity":1,"poll_after_ms":500}', request_id)
  end
  if verdict == 50 then -- "2"
    return repeated(activity, user, rest, request_id)
  end
  if verdict == 51 then -- "3"
    sales:set("sold:" .. activity, true, SOLD_OUT_SECONDS)
    return sold_out()
  end
  return unauthorized()
end

-- user "": whoever the session in "key" belongs to
local function buy(activity, user, key)
  local connection = redis:new()
  connection:set_timeout(TIMEOUT_MS)
  if not connection:connect(address) then
    return busy()
  end

  local facts, err = facts_of(connection, activity)
  if err then
    connection:close()
    return busy()
  end

  local now = now_ms()
  if not facts or now < facts[1] then
    connection:set_keepalive(KEEP_MS, POOL)
    return answer(200, 40001, "活动未开始", "null")
  end
  if now >= facts[2] then
    connection:set_keepalive(KEEP_MS, POOL)
    return answer(200, 40002, "活动已结束", "null")
  end

  local request_id = var.http_x_request_id or var.request_id

  local tag = "{" .. activity .. "}"
  local reply = call_script(connection, "seckill:stock:" .. tag, "seckill:order_users:" .. tag,
                            "seckill:orders:" .. tag, key, activity, user, request_id, now)
  if not reply then
    connection:close()
    return busy()
  end
  connection:set_keepalive(KEEP_MS, POOL)
  return tell(activity, user, reply, request_id)
end

-- A signed token.  limit: one purchase a second per user.
function funnel.signed(activity, limit)
  if sales:get("sold:" .. activity) then
    return sold_out()
  end

  local text = bearer()
  local user = text and token.user(text, ngx.time())
  if not user then
    return unauthorized()
  end

  if limit and not sales:add("limit:" .. activity .. ":" .. user, true, LIMIT_SECONDS) then
    return limited()
  end
  if not body_is_good() then
    return answer(400, 40000, "参数错误", "null")
  end
  return buy(activity, user, "seckill:result:" .. user .. ":{" .. activity .. "}")
end

-- An opaque token: the script looks it up in the same call, so the limit is the
-- token's and not the user's.
function funnel.session(activity)
  if sales:get("sold:" .. activity) then
    return sold_out()
  end

  local text = bearer()
  if not text then
    return unauthorized()
  end

  local hash = token.hash(text)
  if not sales:add("limit:" .. activity .. ":" .. hash, true, LIMIT_SECONDS) then
    return limited()
  end
  if not body_is_good() then
    return answer(400, 40000, "参数错误", "null")
  end
  return buy(activity, "", "seckill:session:" .. hash)
end

return funnel

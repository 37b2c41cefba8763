-- The scripts run inside Redis: Lua 5.1 and these globals, which are read only.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV", "cjson" }
max_line_length = 120

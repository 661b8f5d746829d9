-- A mark, or a secret that a client with a key has encrypted before it came here: {"$encrypted": "v1:<key id>:<base64>"}.
create or replace function menzil._is_sealed(p_value jsonb) returns boolean
language sql immutable parallel safe as $$
  select coalesce(menzil._is_secret_mark(p_value)
  or p_value = jsonb_build_object('$encrypted', p_value -> '$encrypted')
     and jsonb_typeof(p_value -> '$encrypted') = 'string'
     and p_value ->> '$encrypted' ~ '^v1:[0-9a-f]{8}:[A-Za-z0-9+/]{38,}={0,2}$', false)
$$;

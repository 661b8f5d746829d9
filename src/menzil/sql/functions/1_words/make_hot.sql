-- Functions with the current month in their text. {body} stands for the partition of the month, {from} and {to} for its
-- bounds: inserting into the partition itself saves PostgreSQL the search for it, which costs as much as the row.
-- A template that is kept here is made anew when a month begins (job hot_functions). Outside its month such a function
-- uses menzil.message: slower, and right.
create or replace function menzil._make_hot(p_name text, p_template text) returns void
language plpgsql set timezone = 'UTC' as $$
begin
  insert into menzil.hot_function as h (name, template) values (p_name, p_template)
    on conflict (name) do update set template = excluded.template;
  perform menzil._renew_hot(p_name, clock_timestamp());
end $$;

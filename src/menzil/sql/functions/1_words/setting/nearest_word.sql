-- The word that a mistyped one was probably meant to be: the one that shares the most pairs of letters; null when
-- hardly any are shared.
create or replace function menzil._nearest_word(p_word text, p_words text[]) returns text
language sql immutable as $$
  select c.word
    from unnest(p_words) c(word)
   cross join lateral (
     select count(*) filter (where strpos(c.word, substr(lower(p_word collate "C"), i.n, 2)) > 0)::numeric / greatest(length(c.word), length(p_word)) as likeness
       from generate_series(1, least(length(p_word), 100) - 1) i(n)
   ) s
   where s.likeness >= 0.3
   order by s.likeness desc, c.word
   limit 1
$$;

-- A keyword that is not enforced: what to write instead, where draft 2020-12 or this database has a word for it.
create or replace function menzil._refuse_keyword(p_keyword text, p_at text) returns void
language plpgsql immutable as $$
begin
  perform menzil._refuse_value(
    format('The schema keyword %s at "%s" is not enforced.', quote_literal(left(menzil._shown(p_keyword), 80)), menzil._shown(p_at)),
    coalesce(case p_keyword
        when 'dependencies' then 'Draft 2020-12 calls it dependentRequired, and dependentSchemas where it holds schemas.'
        when 'additionalItems' then 'Draft 2020-12 calls it items, and the list of schemas before it prefixItems.'
        when 'id' then 'Draft 2020-12 calls it $id.'
        when '$dynamicRef' then 'A dynamic reference depends on the document that refers to it, and only one document is read; write $ref.'
        when '$dynamicAnchor' then 'A dynamic reference depends on the document that refers to it, and only one document is read; write $anchor.'
        when '$recursiveRef' then 'Draft 2020-12 writes {"$ref": "#"}.'
        when '$vocabulary' then 'A vocabulary belongs to a metaschema, not to the schema of an event.' end,
      concat_ws(' ', 'Did you mean ' || menzil._nearest_word(p_keyword, array(select w.keyword from menzil._schema_keywords() w)) || '?',
        'Leave it out, or let its name begin with x- if it is a note; the page on events lists the keywords.')));
end $$;

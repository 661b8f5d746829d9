-- The keywords that are enforced, and what each takes; then those that only describe, among them what pydantic and OpenAPI write.
-- A keyword that is neither here nor begins with x- is refused when an event type is created: better no schema than one that is
-- half believed.
create or replace function menzil._schema_keywords() returns table (keyword text, kind text)
language sql immutable parallel safe as $$
  values ('type', 'type'), ('enum', 'list'), ('const', 'anything'),
         ('properties', 'schemas'), ('patternProperties', 'schemas by pattern'), ('additionalProperties', 'schema'), ('propertyNames', 'schema'),
         ('required', 'names'), ('dependentRequired', 'lists of names'), ('dependentSchemas', 'schemas'),
         ('minProperties', 'count'), ('maxProperties', 'count'),
         ('items', 'schema'), ('prefixItems', 'list of schemas'), ('contains', 'schema'), ('minContains', 'count'), ('maxContains', 'count'),
         ('minItems', 'count'), ('maxItems', 'count'), ('uniqueItems', 'boolean'),
         ('minLength', 'count'), ('maxLength', 'count'), ('pattern', 'pattern'),
         ('minimum', 'number'), ('maximum', 'number'), ('exclusiveMinimum', 'number'), ('exclusiveMaximum', 'number'),
         ('multipleOf', 'positive number'),
         ('allOf', 'list of schemas'), ('anyOf', 'list of schemas'), ('oneOf', 'list of schemas'), ('not', 'schema'),
         ('if', 'schema'), ('then', 'schema'), ('else', 'schema'), ('$ref', 'reference'), ('$defs', 'schemas'), ('definitions', 'schemas'), ('$anchor', 'anchor'),
         ('unevaluatedProperties', 'schema'), ('unevaluatedItems', 'schema'),
         ('title', 'text'), ('description', 'text'), ('default', 'anything'), ('examples', 'list'), ('$comment', 'text'), ('$schema', 'dialect'),
         ('$id', 'text'), ('deprecated', 'boolean'), ('readOnly', 'boolean'), ('writeOnly', 'boolean'), ('format', 'text'),
         ('contentEncoding', 'text'), ('contentMediaType', 'text'), ('contentSchema', 'anything'),
         ('discriminator', 'anything'), ('nullable', 'boolean'), ('example', 'anything'), ('externalDocs', 'anything'), ('xml', 'anything')
$$;

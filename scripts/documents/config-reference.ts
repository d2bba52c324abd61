import { configInputSchema, isSchema, type JsonSchema } from "../../src/config/schema.ts";

/** One key of the file in the reference. */
export interface ReferenceRow {
  /** With `<name>` for names that the operator chooses and `[]` for the items of a list. */
  readonly key: string;
  readonly type: string;
  readonly initial: string;
  readonly about: string;
}

export interface ReferenceSection {
  readonly key: string;
  readonly about: string;
  readonly rows: readonly ReferenceRow[];
}

/** Every key of the file, by its first part, in the order of the schema. */
export function referenceSections(): readonly ReferenceSection[] {
  const schema = configInputSchema();
  return properties(schema).map(({ key, schema: part, isRequired }) => ({
    key,
    about: part.description ?? "",
    rows: rowsOf({ key, schema: part, isRequired }),
  }));
}

interface Property {
  readonly key: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

function properties(schema: JsonSchema): readonly Property[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, part]) =>
    isSchema(part)
      ? [{ key, schema: part, isRequired: schema.required?.includes(key) === true }]
      : [],
  );
}

function rowsOf(property: Property): readonly ReferenceRow[] {
  const { key, schema, isRequired } = property;
  const row: ReferenceRow = {
    key,
    type: typeOf(schema),
    initial: isRequired ? "required" : formatInitial(schema.default),
    about: schema.description ?? "",
  };
  const inner = innerRows(key, schema);
  // A map with known keys has rows for its keys only.
  return schema.properties === undefined ? [row, ...inner] : inner;
}

function innerRows(key: string, schema: JsonSchema): readonly ReferenceRow[] {
  const { additionalProperties, items } = schema;
  if (schema.properties !== undefined) return memberRows(`${key}.`, schema);
  if (isSchema(items)) return memberRows(`${key}[].`, items);
  return isSchema(additionalProperties) ? memberRows(`${key}.<name>.`, additionalProperties) : [];
}

function memberRows(prefix: string, schema: JsonSchema): readonly ReferenceRow[] {
  const forms = (schema.oneOf?.filter(isSchema) ?? [schema]).map((form) => ({
    kind: kindOf(form),
    rows: properties(form).flatMap((property) =>
      rowsOf({ ...property, key: `${prefix}${property.key}` }),
    ),
  }));
  return mergeForms(forms);
}

interface Form {
  readonly kind: string;
  readonly rows: readonly ReferenceRow[];
}

/** Merges the forms of a map, which share most keys, and marks differences between them. */
function mergeForms(forms: readonly Form[]): readonly ReferenceRow[] {
  const merged = new Map<string, ReferenceRow>();
  for (const { kind, rows } of forms) {
    for (const row of rows) {
      const having = forms.filter((form) => form.rows.some(({ key }) => key === row.key));
      const isShared = having.length === forms.length;
      const mark = having.length === 1 ? `Kind \`${kind}\` only.` : `Kind \`${kind}\`:`;
      const about = isShared ? row.about : `${mark} ${row.about}`;
      const earlier = merged.get(row.key);
      merged.set(row.key, earlier === undefined ? { ...row, about } : mergeRow(earlier, row, kind));
    }
  }
  return [...merged.values()];
}

function mergeRow(earlier: ReferenceRow, row: ReferenceRow, kind: string): ReferenceRow {
  const isKnownType = earlier.type === row.type || earlier.type.split(", ").includes(row.type);
  return {
    key: row.key,
    type: isKnownType ? earlier.type : `${earlier.type}, ${row.type}`,
    initial:
      earlier.initial === row.initial
        ? earlier.initial
        : `${earlier.initial}; \`${kind}\`: ${row.initial}`,
    about:
      earlier.about === row.about ? row.about : `${earlier.about} Kind \`${kind}\`: ${row.about}`,
  };
}

function kindOf(form: JsonSchema): string {
  const kind = form.properties?.["kind"];
  return isSchema(kind) ? String(kind.const) : "";
}

function typeOf(schema: JsonSchema): string {
  if (schema.title !== undefined) return schema.title;
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((choice) => `\`${choice}\``).join(", ");
  if (schema.type === "integer") return "whole number";
  if (schema.type === "boolean") return "true or false";
  if (schema.type === "array") return isMap(schema.items) ? "list" : "list of text";
  if (schema.type === "object") return isText(schema.additionalProperties) ? "map of text" : "map";
  return "text";
}

function isMap(schema: unknown): boolean {
  return isSchema(schema) && schema.properties !== undefined;
}

function isText(schema: unknown): boolean {
  return isSchema(schema) && schema.type === "string";
}

function formatInitial(value: unknown): string {
  if (value === undefined) return "none";
  return typeof value === "string" ? `\`${value}\`` : `\`${JSON.stringify(value)}\``;
}

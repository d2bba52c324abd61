import { configInputSchema, isSchema, type JsonSchema } from "../../src/config/schema.ts";

/** One key of the file in the reference. */
export interface ReferenceEntry {
  /** With `.<name>` behind a map of names that the operator chooses, and `[]` behind a list. */
  readonly key: string;
  readonly type: string;
  /** JSON of the default. Undefined: there is none, or a reader takes it from the meaning. */
  readonly initial: string | undefined;
  /** Defaults of kinds that differ from `initial`. */
  readonly initialOf: Readonly<Record<string, string>>;
  readonly isRequired: boolean;
  readonly range: string | undefined;
  readonly about: string;
  /** The kind, if the key exists for one kind only. */
  readonly kind: string | undefined;
  readonly entries: readonly ReferenceEntry[];
}

/** The first keys of the file, in the order of the schema, with the keys below them. */
export function referenceEntries(): readonly ReferenceEntry[] {
  return entriesOf(configInputSchema());
}

interface Property {
  readonly key: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

function entriesOf(schema: JsonSchema): readonly ReferenceEntry[] {
  return properties(schema).map(entryOf);
}

function properties(schema: JsonSchema): readonly Property[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, part]) =>
    isSchema(part)
      ? [{ key, schema: part, isRequired: schema.required?.includes(key) === true }]
      : [],
  );
}

function entryOf({ key, schema, isRequired }: Property): ReferenceEntry {
  const { suffix, inner } = innerOf(schema);
  const [, about = "", from, to] =
    /^(.*?)(?: From (\S+) to (\S+)\.)?$/.exec(schema.description ?? "") ?? [];
  return {
    key: `${key}${suffix}`,
    type: typeOf(schema),
    initial: formatInitial(schema.default),
    initialOf: {},
    isRequired,
    range: from === undefined ? undefined : `${from}–${to}`,
    about,
    kind: undefined,
    entries: inner === undefined ? [] : membersOf(inner),
  };
}

function innerOf(schema: JsonSchema): { readonly suffix: string; readonly inner?: JsonSchema } {
  const { additionalProperties, items } = schema;
  if (schema.properties !== undefined) return { suffix: "", inner: schema };
  if (hasMembers(items)) return { suffix: "[]", inner: items };
  if (hasMembers(additionalProperties)) return { suffix: ".<name>", inner: additionalProperties };
  return { suffix: "" };
}

function hasMembers(schema: unknown): schema is JsonSchema {
  return isSchema(schema) && (schema.properties !== undefined || schema.oneOf !== undefined);
}

function membersOf(schema: JsonSchema): readonly ReferenceEntry[] {
  const forms = schema.oneOf?.filter(isSchema).map((form) => ({
    kind: kindOf(form),
    entries: entriesOf(form),
  }));
  return forms === undefined ? entriesOf(schema) : mergeForms(forms);
}

interface Form {
  readonly kind: string;
  readonly entries: readonly ReferenceEntry[];
}

/** Merges the forms of a map, which share most keys, and marks differences between them. */
function mergeForms(forms: readonly Form[]): readonly ReferenceEntry[] {
  const keys = new Set(forms.flatMap(({ entries }) => entries.map(({ key }) => key)));
  return [...keys].flatMap((key) => {
    const having = forms.flatMap(({ kind, entries }) => {
      const entry = entries.find((each) => each.key === key);
      return entry === undefined ? [] : [{ kind, entry }];
    });
    return mergeEntries(having, forms.length);
  });
}

interface EntryOfKind {
  readonly kind: string;
  readonly entry: ReferenceEntry;
}

function mergeEntries(having: readonly EntryOfKind[], count: number): readonly ReferenceEntry[] {
  const [first] = having;
  if (first === undefined) return [];
  if (having.length === 1) return [{ ...first.entry, kind: first.kind }];
  const meanings = new Set(having.map(({ entry }) => entry.about));
  const isShared = having.length === count && meanings.size === 1;
  const others = having.flatMap(({ kind, entry }) =>
    entry.initial === first.entry.initial && entry.isRequired === first.entry.isRequired
      ? []
      : [[kind, entry.isRequired ? "required" : (entry.initial ?? "none")] as const],
  );
  return [
    {
      ...first.entry,
      type: [...new Set(having.flatMap(({ entry }) => entry.type.split("|")))].join("|"),
      initialOf: Object.fromEntries(others),
      about: isShared
        ? first.entry.about
        : having.map(({ kind, entry }) => `\`${kind}\`: ${entry.about}`).join(" "),
      entries: mergeForms(having.map(({ kind, entry }) => ({ kind, entries: entry.entries }))),
    },
  ];
}

function kindOf(form: JsonSchema): string {
  const kind = form.properties?.["kind"];
  return isSchema(kind) ? String(kind.const) : "";
}

function typeOf(schema: JsonSchema): string {
  if (schema.title !== undefined) return schema.title;
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum !== undefined) return schema.enum.join("|");
  if (schema.type === "integer") return "number";
  if (schema.type === "array") return "list";
  if (schema.type === "object") return "map";
  return schema.type === "boolean" ? schema.type : "text";
}

function formatInitial(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value);
}

import { Option } from "commander";
import { fieldRows, type FieldRow } from "../../control/openapi/field-rows.ts";
import { isObject, type JsonObject } from "../../domain/json-object.ts";
import type { Operation } from "../../control/operation/operation.ts";
import { entities, type Entity } from "./entities.ts";
import {
  FromNow,
  limitUpTo,
  readCount,
  readDays,
  readList,
  readSeconds,
  readTime,
  type ReadValue,
} from "./read-values.ts";

/** How the command line deviates from the schema of a field. */
export interface FieldText {
  /** Name of the option; by default the field's name. */
  readonly option?: string;
  /** Placeholder of the value in the help. */
  readonly value?: string;
  readonly about?: string;
  /** The text that means null. */
  readonly none?: string;
  /** The flag that sets an object to null. */
  readonly noneFlag?: string;
  /** The type of object whose id the field contains. */
  readonly entity?: Entity;
  readonly read?: ReadValue;
  readonly default?: string;
}

export type FieldTexts = Readonly<Record<string, FieldText>>;

/** Texts for fields that mean the same in every request. */
const commonTexts: FieldTexts = {
  account_id: { option: "account", entity: entities.account, about: "An account, by id or name." },
  action: { about: "For example key.rotate." },
  actor_id: { option: "actor", value: "id", about: "Id of the user who did it." },
  allowed_models: { option: "models", none: "all" },
  allowed_networks: { option: "networks", none: "any" },
  application_id: {
    option: "application",
    entity: entities.application,
    about: "An application, by id or name.",
  },
  by: { value: "a,b", read: (text) => readList(text).join(",") || undefined },
  checkpoint: { option: "checkpoints" },
  cursor: { about: "Continues a list where the previous page ended." },
  environment: { about: "An environment, by its name." },
  expires_at: {
    option: "expires",
    none: "never",
    value: "30d|time",
    about: "When it stops working, or `never`.",
  },
  expires_in_seconds: { option: "expires" },
  expires_in_days: {
    option: "expires-in",
    value: "90d",
    read: readDays,
    about: "Lifetime, from 1d to 365d. Default: 90d.",
  },
  key_id: {
    option: "key",
    entity: entities.key,
    about: "A key, by its id or first characters (sk-slc_...).",
  },
  limit: { value: "n", read: limitUpTo(Infinity), about: "Maximum entries to show. Default: 50." },
  "limits.requests_per_minute": { about: "Limit of its own; needs --tokens-per-minute." },
  "limits.tokens_per_minute": { about: "Limit of its own; needs --requests-per-minute." },
  may_be_billed_twice: { option: "billed-twice", about: "Calls that a provider may bill twice." },
  overlap_seconds: {
    option: "overlap",
    value: "24h|0s|7d",
    read: readSeconds,
    about: "How long the old secret keeps working. Default: 24h, at most 7d.",
  },
  plan: { about: "A configured plan." },
  rest: { about: "Also the sum of the groups beyond --limit." },
  since: { value: "24h|time", about: "Start: an age, a date or a time with its zone." },
  password: { option: "password-file", value: "file", about: "File; `-`: standard input." },
  subject_id: { option: "subject", value: "id", about: "Id of what changed, such as a key." },
  until: { value: "1h|time", about: "End. Default: now." },
  user_id: { option: "user", entity: entities.user, about: "A user, by email address or id." },
};

export interface Field {
  /** Its name in the query or body; two names for a field inside an object. */
  readonly path: readonly [string, string | undefined];
  readonly option: Option;
  /** The value of a flag; undefined for an option with a value. */
  readonly flag?: true | "true" | null;
  readonly entity: Entity | undefined;
}

/** Stands for null, which the parser replaces by an empty text. */
export const nothing = Symbol("nothing");

/** Fields that messages name by a plain word instead of an option. */
const plainNames: ReadonlyMap<string, string> = new Map([
  ["email", "the email address"],
  ["limits", "--requests-per-minute and --tokens-per-minute"],
  ["name", "the name"],
  ["password", "the password"],
]);

/** The word for a field in messages: `limits.tokens_per_minute` is `--tokens-per-minute`. */
export function wordOf(field: string): string {
  return plainNames.get(field) ?? `--${optionName(field, commonTexts[field])}`;
}

/**
 * Replaces field names in a message of the admin API by options: that of `param`, the field at fault, and
 * ids.
 */
export function inOptions(message: string, param: string | null): string {
  if (param === null) return message;
  const [, field = "", index] = /^([^[]*)(?:\[(\d+)\])?/.exec(param) ?? [];
  const named = index === undefined ? wordOf(field) : `${wordOf(field)} (no. ${Number(index) + 1})`;
  return message
    .replaceAll(`'${param}'`, named)
    .replaceAll(/'([a-z]+_id)'/g, (text, id: string) => (id in commonTexts ? wordOf(id) : text))
    .replaceAll("parameter: --", "option: --");
}

/** The fields of a query and of a body, in the order of their schemas. */
export function fieldsOf(
  { query, body }: Pick<Operation, "query" | "body">,
  texts: FieldTexts,
): readonly Field[] {
  const rows = [query, body].flatMap((schema) => (schema === undefined ? [] : fieldRows(schema)));
  return rows.flatMap((row) => {
    const text = { ...commonTexts[row.name], ...texts[row.name] };
    const field = fieldOf(row, text);
    return field === undefined ? [] : [field];
  });
}

function fieldOf(row: FieldRow, text: FieldText): Field | undefined {
  const [name = "", inner, ...deeper] = row.name.split(".");
  const path = [name, inner] as const;
  const { entity } = text;
  if (deeper.length > 0 || name.endsWith("[]")) return undefined;
  const type = row.type.replace(/ or null$/, "");
  if (type === "object") {
    if (text.noneFlag === undefined) return undefined;
    const option = new Option(`--${text.noneFlag}`, "Remove its own limits.");
    option.conflicts(["requestsPerMinute", "tokensPerMinute"]);
    return { path, option, flag: null, entity: undefined };
  }
  const long = `--${optionName(row.name, text)}`;
  const about = aboutOf(row, text);
  if (type === "boolean" || type === '"true"') {
    const flag = type === "boolean" ? true : "true";
    return { path, option: new Option(long, about), flag, entity };
  }
  const option = new Option(`${long} <${text.value ?? valueOf(type, text)}>`, about);
  const read = text.read ?? readerOf(type);
  const none = text.none ?? "none";
  const isNullable = type !== row.type;
  if (type.includes(" | ") && !type.startsWith("list of ")) option.choices(type.split(" | "));
  else {
    option.argParser((typed: string) => (isNullable && typed === none ? nothing : read(typed)));
  }
  if (text.default !== undefined) option.default(text.default);
  // The fields of an inner object are required only when one of them is given.
  if (row.isRequired && inner === undefined) option.makeOptionMandatory();
  return { path, option, entity };
}

function optionName(field: string, text: FieldText | undefined): string {
  return text?.option ?? (field.split(".").at(-1) ?? field).replaceAll("_", "-");
}

function aboutOf({ about, type }: FieldRow, { about: other, none }: FieldText): string {
  const text = (other ?? about).replace(/\bnull:/i, `\`${none ?? "none"}\`:`);
  return type.startsWith("list of ") && text === "" ? "Separated by commas." : text;
}

function valueOf(type: string, { entity }: FieldText): string {
  if (entity !== undefined) return entity.noun;
  if (type.startsWith("list of ")) return "a,b";
  if (type.includes(" | ")) return "word";
  return type === "integer" ? "n" : "text";
}

function readerOf(type: string): ReadValue {
  if (type === "integer") return readCount;
  if (type === "time") return readTime;
  return type.startsWith("list of ") ? readList : (text) => text;
}

export function assemble(values: ReadonlyMap<Field, unknown>): JsonObject {
  const made: Record<string, unknown> = {};
  for (const [{ path }, value] of values) {
    const [name, part] = path;
    const before = made[name];
    if (value instanceof FromNow) made[name.replace(/_at$/, "_in_seconds")] = value.seconds;
    else if (part === undefined) made[name] = value;
    else made[name] = { ...(isObject(before) ? before : {}), [part]: value };
  }
  return made;
}

import { z } from "zod";
import { type CamelCase, camelCase } from "../domain/json-object.ts";
import { Secret } from "../domain/keys/secret.ts";

/** The types of values in the configuration file. */

/** The least and the most that a value may be. Descriptions of the file end with them. */
type Range<Value> = readonly [least: Value, most: Value];

/** What the published schema says of a range; `configInputSchema` puts it behind the description. */
function rangeMeta([least, most]: Range<string | number>) {
  return { range: `From ${least} to ${most}.` };
}

/** Units of a quantity by their names; a text without one has that of the empty name. */
type Units = Readonly<Record<string, number>>;

const durationUnitsMs: Units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const sizeUnitsBytes: Units = { "": 1, B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** Text such as `500ms`, `30s`, `10m`, `24h` or `90d`; becomes milliseconds. */
export function duration(initial: string, range: Range<string>) {
  return durationValue(initial, range)
    .prefault(initial)
    .meta({ title: "duration", ...rangeMeta(range) });
}

/** A duration without a default. */
export function optionalDuration(example: string, range: Range<string>) {
  return durationValue(example, range)
    .optional()
    .meta({ title: "duration", ...rangeMeta(range) });
}

function durationValue(example: string, [least, most]: Range<string>) {
  const mustBe = `must be a duration from ${least} to ${most}, such as ${example}`;
  return z
    .string({ error: mustBe })
    .regex(/^([0-9]+)(ms|s|m|h|d)$/, { error: mustBe, abort: true })
    .transform(quantity(durationUnitsMs, [least, most], mustBe));
}

/** Bytes as a whole number, or text such as `64KiB` or `10MiB`; becomes bytes. */
export function size(initial: string, range: Range<string>) {
  const [least, most] = range;
  const error = `must be a size from ${least} to ${most}, such as ${initial}, or whole bytes`;
  const text = z.string().regex(/^([0-9]+)(B|KiB|MiB|GiB)?$/, { error, abort: true });
  return z
    .union([z.int().min(0), text], { error })
    .transform(quantity(sizeUnitsBytes, range, error))
    .prefault(initial)
    .meta({ title: "size", ...rangeMeta(range) });
}

/** Turns a text with a unit, or a number, into a number within the range. */
function quantity(units: Units, [least, most]: Range<string>, mustBe: string) {
  const read = (text: string): number => {
    const [, amount = "", unit = ""] = /^([0-9]+)(\w*)$/.exec(text) ?? [];
    return Number(amount) * (units[unit] ?? Number.NaN);
  };
  const [min, max] = [read(least), read(most)];
  return (value: string | number, context: z.RefinementCtx): number => {
    const amount = typeof value === "number" ? value : read(value);
    return amount >= min && amount <= max ? amount : refused(context, mustBe, value);
  };
}

function refused(context: z.RefinementCtx, message: string, input: unknown): never {
  context.issues.push({ code: "custom", message, input });
  return z.NEVER;
}

/** A whole number, or digits as text, as environment variables provide it. */
export function wholeNumber(initial: number, range: Range<number>) {
  return requiredWholeNumber(range).prefault(initial).meta(rangeMeta(range));
}

export function requiredWholeNumber(range: Range<number>) {
  const digits = /^[0-9]{1,15}$/;
  const [least, most] = range;
  return z
    .preprocess(
      (value) => (typeof value === "string" && digits.test(value) ? Number(value) : value),
      z.int().min(least).max(most),
    )
    .meta(rangeMeta(range));
}

/** True or false, or the text `true` or `false`, as environment variables provide it. */
export function flag(initial: boolean) {
  return requiredFlag().prefault(initial);
}

export function requiredFlag() {
  return z.preprocess(
    (value) => (value === "true" ? true : value === "false" ? false : value),
    z.boolean(),
  );
}

export function text(about: string) {
  return z.string().min(1, "must not be empty").describe(about);
}

/** A name that is safe in a path, a metric label and a log line. */
export function identifier(about: string) {
  return z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      "must be 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit",
    )
    .meta({ title: "name", description: about });
}

/** A host without port, in lower case; with `allowsAny`, `*` too. */
export function hostName(problem: string, { allowsAny = false } = {}) {
  const host = String.raw`\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]{0,252}`;
  return z
    .string()
    .regex(new RegExp(allowsAny ? `^(\\*|${host})$` : `^(${host})$`), problem)
    .transform((text) => text.toLowerCase());
}

/**
 * The names that callers send as `model`. Names from public model catalogues contain slashes and
 * colons.
 */
export function modelAlias(about: string) {
  return z
    .string()
    .regex(
      /^[A-Za-z0-9](?:[A-Za-z0-9._:/-]{0,126}[A-Za-z0-9])?$/,
      "must be 1 to 128 letters, digits, '.', '_', '-', ':' or '/', and begin and end with a " +
        "letter or digit",
    )
    .meta({ title: "name", description: about });
}

const urlProblem = "must be an http:// or https:// URL without user, query or fragment";

/** A base address for paths; trailing slashes are removed. */
export function httpUrl(about: string) {
  return z
    .string()
    .regex(/^https?:\/\/[^\s?#@\\]+$/i, urlProblem)
    .transform((value, context) => {
      if (URL.canParse(value)) return value.replace(/\/+$/, "");
      return refused(context, urlProblem, value);
    })
    .meta({ title: "url", description: about });
}

/** A text for a credential header: no spaces, no line ends. */
export function credential(about: string, minLength = 1) {
  return z
    .string()
    .regex(/^[\x21-\x7e]+$/, {
      error: "must be visible ASCII without spaces or line ends, and not empty",
      abort: true,
    })
    .min(minLength, `must have at least ${minLength} characters`)
    .transform((value) => new Secret(value))
    .meta({ title: "secret", description: about });
}

export interface ListenAddress {
  /** Without the brackets of an IPv6 address. */
  readonly hostname: string;
  /** 0: any free port. */
  readonly port: number;
}

const addressPattern = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z._-]+)):([0-9]{1,5})$/;

/** `host:port`; an IPv6 host stands in brackets. */
export function listenAddress(about: string, initial: string) {
  const mustBe =
    "must be host:port with a port from 0 to 65535, such as 127.0.0.1:8080 or '[::1]:8080'";
  return z
    .string({ error: mustBe })
    .regex(addressPattern, { error: mustBe, abort: true })
    .transform((value, context): ListenAddress => {
      const [, ipv6, host, port] = addressPattern.exec(value) ?? [];
      const address = { hostname: ipv6 ?? host ?? "", port: Number(port) };
      const isHost = ipv6 === undefined || URL.canParse(`http://[${ipv6}]/`);
      if (isHost && address.port <= 65_535) return address;
      return refused(context, mustBe, value);
    })
    .prefault(initial)
    .meta({ title: "address", description: about });
}

/** A path in the file: keys of maps, and indices of lists from 0. */
export type ConfigPath = readonly (string | number)[];

/** A mistake in the file. Never contains a value of the file, which may be secret. */
export interface SettingProblem {
  readonly path: ConfigPath;
  readonly message: string;
  /** A known name that is similar to the written one. */
  readonly suggestion?: string;
}

export function withSuggestion(
  problem: SettingProblem,
  suggestion: string | undefined,
): SettingProblem {
  return suggestion === undefined ? problem : { ...problem, suggestion };
}

/** A section of the file under the names that code uses: `maxTokens` for `max_tokens`. */
export type CamelCased<File extends object> = {
  readonly [Key in keyof File & string as CamelCase<Key>]: File[Key];
};

export function camelCased<File extends object>(file: File): CamelCased<File>;
export function camelCased(file: object): unknown {
  return Object.fromEntries(Object.entries(file).map(([key, value]) => [camelCase(key), value]));
}

import type { CallTags } from "../domain/usage/usage.ts";
import type { Call } from "../snapshot/call.ts";
import type { Pseudonyms } from "../domain/keys/pseudonyms.ts";

/** What a caller says about whom a call is for. */
export interface CallLabels {
  /** As it is stored; undefined: it is not, or nobody was named. */
  readonly endUser: string | undefined;
  /** Where the limits of the end user are counted; undefined: it has none. */
  readonly endUserScope: string | undefined;
  /** The end user in budgets for each; undefined: there is none. */
  readonly spender: string | undefined;
  readonly tags: CallTags | undefined;
}

/** Where a request names its end user and its tags. */
export interface NamedLabels {
  readonly user?: string | undefined;
  readonly safetyIdentifier?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** Of a call that names nobody. */
export const noLabels: CallLabels = {
  endUser: undefined,
  endUserScope: undefined,
  spender: undefined,
  tags: undefined,
};

export const tagsHeader = "x-sluice-tags";
const longestNameBytes = 256;
const longestTagBytes = 64;
const longestTagsHeader = 1_024;

export interface LabelServices {
  /** Of what callers name their end users and caches. */
  readonly names: Pseudonyms;
  /** A caller named an end user, or set a tag, in a way that is not stored. */
  readonly onLabelDropped: (label: "end_user" | "tag") => void;
}

/** Values that are no names are dropped; the call goes on. */
export function labelsOf(call: Call, asked: NamedLabels, services: LabelServices): CallLabels {
  const { endUsers, tags: keys } = call.snapshot.settings;
  const plan = call.snapshot.plans.get(call.caller.key.plan);
  const named = endUsers === "off" ? undefined : nameOf(call, asked, plan?.endUserHeader);
  const endUser = named && printable(named, longestNameBytes);
  if (named && endUser === undefined) services.onLabelDropped("end_user");
  const tags = keys.length === 0 ? undefined : tagsOf(call, asked, services);
  if (endUser === undefined) return tags === undefined ? noLabels : { ...noLabels, tags };
  const isLimited = plan?.eachEndUser !== undefined;
  const isClear = endUsers === "clear";
  const { accountId } = call.caller.key;
  const mark = isClear && !isLimited ? undefined : services.names.ofEndUser(accountId, endUser);
  const stored = isClear ? endUser : mark?.pseudonym;
  const spends = stored !== undefined && call.caller.budgets?.some((of) => of.eachEndUser) === true;
  return {
    endUser: stored,
    endUserScope: isLimited ? mark?.scope : undefined,
    spender: spends ? services.names.spenderOf(accountId, stored) : undefined,
    tags,
  };
}

/** The first place that names one decides. */
function nameOf(
  { headers }: Pick<Call, "headers">,
  { safetyIdentifier, user }: NamedLabels,
  header: string | undefined,
): string | undefined {
  const ofHeader = header === undefined ? undefined : headers.get(header)?.trim();
  return ofHeader || safetyIdentifier || user || undefined;
}

/** Of keys that the file allows. What a header says goes before `metadata`. */
function tagsOf(
  { headers, snapshot }: Pick<Call, "headers" | "snapshot">,
  { metadata }: NamedLabels,
  { onLabelDropped }: LabelServices,
): CallTags | undefined {
  const written = headers.get(tagsHeader);
  if (written === null && metadata === undefined) return undefined;
  const isLong = written !== null && written.length > longestTagsHeader;
  if (isLong) onLabelDropped("tag");
  const ofHeader = new Map(isLong ? [] : written?.split(",").map(readPair));
  const tags: Record<string, string> = {};
  for (const key of snapshot.settings.tags) {
    const value = ofHeader.get(key) ?? (metadata && Object.hasOwn(metadata, key) && metadata[key]);
    if (typeof value !== "string" || value === "") continue;
    const tag = printable(value, longestTagBytes);
    if (tag === undefined) onLabelDropped("tag");
    else tags[key] = tag;
  }
  return Object.keys(tags).length === 0 ? undefined : tags;
}

function readPair(pair: string): [string, string] {
  const [key = "", ...value] = pair.split("=");
  return [key.trim(), value.join("=").trim()];
}

/** Text in one direction on one line: no controls, no marks of direction, nothing that was not decoded. */
const printableText = /^[^\p{C}\p{Zl}\p{Zp}\uFFFD]+$/u;

function printable(value: string, mostBytes: number): string | undefined {
  // Of a long text not even the spaces are looked at.
  const text = value.length > 4 * mostBytes ? "" : value.trim();
  const fits = Buffer.byteLength(text) <= mostBytes && printableText.test(text);
  return fits ? text : undefined;
}

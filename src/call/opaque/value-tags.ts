import { createHash, timingSafeEqual } from "node:crypto";
import { createKeyDigest, type KeyDigest, type Peppers } from "../../domain/keys/peppers.ts";
import type { ValueOrigin } from "../../upstreams/adapter.ts";

/** Where a value is from, and whose it is. */
export interface ValueHolder {
  readonly origin: ValueOrigin;
  /** Of the gateway. */
  readonly accountId: string;
}

/** A value in its tag. The checks of one value at several origins share what takes long. */
export interface TaggedValue {
  readonly value: string;
  isFrom(holder: ValueHolder): boolean;
}

/**
 * Tags of values that only the upstream that wrote them understands: `s1.<MAC>.<value>`. The MAC
 * covers the origin, the gateway's account and the text beside the value, so a tag is good for
 * nobody else and nowhere else. Nothing is stored: the caller brings the value back inside its tag.
 */
export class ValueTags {
  /** The first makes tags, all verify them. */
  readonly #keys: readonly KeyDigest[];

  constructor({ all }: Pick<Peppers, "all">) {
    this.#keys = all.map(({ digest }) => createKeyDigest(digest("opaque values of upstreams")));
  }

  /** `text`: what stands beside the value and returns with it. */
  tag(value: string, text: string, holder: ValueHolder): string {
    const [mac = ""] = this.#macs(new Content(value, text), holder);
    return `${prefix}${mac}.${value}`;
  }

  /** Undefined for a text that is no tagged value. */
  read(tagged: string, text: string): TaggedValue | undefined {
    if (!tagged.startsWith(prefix) || tagged[valueStart - 1] !== ".") return undefined;
    const value = tagged.slice(valueStart);
    const mac = tagged.slice(prefix.length, valueStart - 1);
    const content = new Content(value, text);
    const isFrom = (holder: ValueHolder): boolean =>
      this.#macs(content, holder).some((expected) => isSame(mac, expected));
    return { value, isFrom };
  }

  /** The id of a tool call with fields that only its upstream understands. */
  markId(id: string, holder: ValueHolder): string {
    const [mac = ""] = this.#macs(new Content(id, ""), holder);
    return `${id}__${mac.slice(0, markLength)}`;
  }

  /** Who wrote the call of an id, and the id to send. */
  readId(id: string, holder: ValueHolder): MarkedId {
    if (!isMarkedId(id)) return { id, author: undefined };
    const own = id.slice(0, -idMarkLength);
    const mark = id.slice(-markLength);
    const macs = this.#macs(new Content(own, ""), holder);
    const isOwn = macs.some((mac) => isSame(mark, mac.slice(0, markLength)));
    if (isOwn) return { id: own, author: "this" };
    return { id: id.length > longestId ? own : id, author: "another" };
  }

  #macs(content: Content, { origin, accountId }: ValueHolder): readonly string[] {
    const { wire, model, account, provesText } = origin;
    const said = provesText === true ? content.withText : content.alone;
    const covered = JSON.stringify([wire, model, account, accountId, said]);
    return this.#keys.map((key) => toText(key(covered)));
  }
}

/** Whether the end of an id looks like a mark. */
export function isMarkedId(id: string | undefined): id is string {
  return id !== undefined && idMark.test(id);
}

export interface MarkedId {
  readonly id: string;
  /** Undefined: the id has no mark. */
  readonly author: "this" | "another" | undefined;
}

/** What a MAC covers of a value, which may be long, hashed once. */
class Content {
  readonly #value: string;
  readonly #text: string;
  #alone: string | undefined;
  #withText: string | undefined;

  constructor(value: string, text: string) {
    this.#value = value;
    this.#text = text;
  }

  get alone(): string {
    return (this.#alone ??= hashOf(this.#value));
  }

  get withText(): string {
    return (this.#withText ??= `${this.alone} ${hashOf(this.#text)}`);
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

function toText(mac: Uint8Array): string {
  return Buffer.from(mac).toString("base64url", 0, macBytes);
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

const prefix = "s1.";
const macBytes = 16;
/** In base64url. */
const macLength = 22;
const valueStart = prefix.length + macLength + 1;

/** Little, as an id has room for little: a forged mark has no benefit but to its forger. */
const markLength = 8;
const idMarkLength = markLength + 2;
const idMark = /__[\w-]{8}$/;
/** In characters; OpenAI takes no longer ones. */
const longestId = 40;

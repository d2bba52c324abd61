import { JsonScan } from "../../../../domain/chat/json-scan.ts";
import { wellFormedJson } from "../../../../domain/chat/well-formed.ts";
import type { ChatEvent, ExtraFields, ToolCallExtra } from "../../../../domain/chat/answer.ts";
import type { ToolKind } from "../../../../domain/chat/conversation.ts";
import {
  answerTooLarge,
  type UpstreamFailure,
} from "../../../../domain/errors/upstream-failure.ts";
import { checkToolCallCount } from "../../collect-answer.ts";
import {
  isObject,
  type JsonObject,
  numberOf,
  objectOf,
  textOf,
} from "../../../../domain/json-fields.ts";
import type { OnUnknownFinish } from "../../finish-words.ts";
import { callThought } from "../../../../wires/chat/call-thoughts.ts";
import { extraFields, knownFields } from "../extra-fields.ts";

/** What reading an answer needs from outside. */
export interface AnswerServices {
  readonly newToolCallId: () => string;
  readonly onUnknownFinish: OnUnknownFinish;
  /** The caller's wire has no place for a server's own fields of a call. */
  readonly signsByThoughts: boolean;
  /** The service tier that the request names; undefined: none. */
  readonly askedTier?: string | undefined;
}

interface Said {
  readonly text: string;
  readonly extra: ToolCallExtra | undefined;
}

/** What a piece of a call says. */
interface Fragment extends Said {
  readonly id: string | undefined;
  readonly index: number | undefined;
  readonly name: string | undefined;
  readonly kind: ToolKind;
}

interface OpenCall {
  /** Counted from 0 without gaps, independent of the upstream's numbers. */
  readonly call: number;
  readonly kind: ToolKind;
  readonly index: number | undefined;
  /** The upstream's own. */
  id: string | undefined;
  name: string;
  hasStarted: boolean;
  /** Arguments and fields that arrived before the name, or empty arguments before others. */
  pending: string;
  extra: ToolCallExtra | undefined;
  readonly progress: JsonScan;
  /** The number of the list in which its name came last. */
  namedIn: number;
  /** Whether its name came again after complete arguments: it, or the head of another call. */
  isNamedAgain: boolean;
  /** Its arguments so far, unless they are long. */
  wholeText: string | undefined;
}

/**
 * Limit on the characters of arguments that are held until the names of their calls arrive, as in
 * one event.
 */
const mostPendingCharacters = 4 * 1024 * 1024;

/** Limit on the characters of a call that are kept to recognize it when it is repeated. */
const mostComparedCharacters = 64 * 1024;

/** Follows the tool calls of one choice through the fragments of an answer, in linear time. */
export class ToolCallTracker {
  readonly #choice: number;
  readonly #services: AnswerServices;
  readonly #usedIds: Set<string>;
  readonly #calls: OpenCall[] = [];
  #pendingCharacters = 0;
  #lists = 0;
  /** The latest call with each of the upstream's ids, and numbers. */
  readonly #byId = new Map<string, OpenCall>();
  readonly #byIndex = new Map<number, OpenCall>();

  /** `usedIds`: of the calls of the whole answer. */
  constructor(choice: number, services: AnswerServices, usedIds: Set<string>) {
    this.#choice = choice;
    this.#services = services;
    this.#usedIds = usedIds;
  }

  get count(): number {
    return this.#calls.length;
  }

  /** Whether the arguments of a call are incomplete. */
  get hasHalfCall(): boolean {
    return this.#calls.some(({ kind, progress }) => kind === "function" && progress.isOpen);
  }

  read(fragments: readonly unknown[], events: ChatEvent[]): void {
    this.#lists += 1;
    for (const fragment of fragments) {
      if (isObject(fragment)) this.#readFragment(readFragment(fragment), events);
    }
  }

  /** Starts calls whose name never came: a nameless call is better than a lost one. */
  finish(events: ChatEvent[]): void {
    for (const open of this.#calls) {
      if (!open.hasStarted) this.#start(open, events);
      this.#release(open, events);
    }
  }

  #readFragment(fragment: Fragment, events: ChatEvent[]): void {
    const candidate = this.#candidate(fragment);
    const continued =
      candidate !== undefined && this.#continues(candidate, fragment) ? candidate : undefined;
    // Some servers repeat whole calls at the end.
    if (continued !== undefined && isRepeated(continued, fragment)) return;
    // A call is complete before the next one begins.
    const latest = continued === undefined ? this.#calls.at(-1) : undefined;
    if (latest?.hasStarted === true) this.#release(latest, events);
    const open = continued ?? this.#open(fragment, candidate);
    this.#note(open, fragment);
    const { text, extra } = fragment;
    if (open.hasStarted) return this.#continue(open, fragment, events);
    this.#pendingCharacters += text.length;
    if (this.#pendingCharacters > mostPendingCharacters) throw nameTooLate();
    open.pending += text;
    open.extra = joined(open.extra, extra);
    if (open.name !== "") this.#start(open, events);
  }

  /** The call that a fragment would continue: by its id if it is known, else by its number. */
  #candidate({ id, index }: Fragment): OpenCall | undefined {
    const numbered = index === undefined ? this.#calls.at(-1) : this.#byIndex.get(index);
    const known = id === undefined ? undefined : this.#byId.get(id);
    if (known === undefined || known === numbered) return numbered;
    // Two calls may have one id.
    return numbered?.id === id && index !== undefined ? numbered : known;
  }

  /**
   * Servers repeat ids and names in every fragment, give every fragment a new id, or give all
   * calls one number, one id or none. Without a name, only arguments after complete ones begin a
   * call.
   */
  #continues(open: OpenCall, { id, index, name, text }: Fragment): boolean {
    const isOtherId = id !== undefined && open.id !== undefined && id !== open.id;
    const isComplete = open.kind === "function" && open.progress.isComplete;
    const beginsValue = isComplete && text.trim() !== "";
    if (name === undefined) return !beginsValue || !(isOtherId || open.isNamedAgain);
    if (isOtherId || (open.name !== "" && name !== open.name)) return false;
    if (index !== undefined && open.index !== undefined && index !== open.index) return false;
    if (isComplete && id !== undefined && open.id === undefined) return false;
    // A list names each call once.
    if (open.namedIn === this.#lists) return false;
    return !beginsValue || (id !== undefined && text === open.wholeText);
  }

  /** `before`: the call that the fragment does not continue; a name after its end is this one's. */
  #open({ id, index, kind, name }: Fragment, before: OpenCall | undefined): OpenCall {
    const call = this.#calls.length;
    checkToolCallCount(call + 1);
    const open: OpenCall = {
      call,
      kind,
      index,
      id,
      name: name ?? (before?.isNamedAgain === true ? before.name : ""),
      hasStarted: false,
      pending: "",
      extra: undefined,
      progress: newProgress(),
      namedIn: 0,
      isNamedAgain: false,
      wholeText: "",
    };
    this.#calls.push(open);
    if (index !== undefined) this.#byIndex.set(index, open);
    return open;
  }

  #note(open: OpenCall, { id, name, text }: Fragment): void {
    open.id ??= id;
    if (id !== undefined && open.id === id) this.#byId.set(id, open);
    if (name !== undefined) {
      open.isNamedAgain = open.name !== "" && open.progress.isComplete;
      open.namedIn = this.#lists;
      if (open.name === "") open.name = name;
    }
    open.progress.push(Buffer.from(text));
    if (text === "" || open.wholeText === undefined) return;
    const isLong = open.wholeText.length + text.length > mostComparedCharacters;
    open.wholeText = isLong ? undefined : open.wholeText + text;
  }

  #start(open: OpenCall, events: ChatEvent[]): void {
    open.hasStarted = true;
    const { call, kind, name, extra, pending } = open;
    const id = this.#idOf(open);
    const choice = this.#choice;
    const thought = this.#services.signsByThoughts ? callThought(id, extra) : undefined;
    if (thought !== undefined) events.push({ type: "reasoning-block", choice, content: thought });
    const start = { type: "tool-call-start", choice, call, id, kind, name } as const;
    events.push(extra === undefined ? start : { ...start, extra });
    this.#pendingCharacters -= pending.length;
    open.pending = "";
    open.extra = undefined;
    this.#continue(open, { text: pending, extra: undefined }, events);
  }

  #release(open: OpenCall, events: ChatEvent[]): void {
    this.#append(open, { text: open.pending, extra: undefined }, events);
    open.pending = "";
  }

  /** Some servers begin a call with empty arguments and then send others: they wait for its end. */
  #continue(open: OpenCall, said: Said, events: ChatEvent[]): void {
    const { text, extra } = said;
    const isEmpty = open.wholeText === text && open.kind === "function" && text.trim() === "{}";
    if (isEmpty) {
      open.pending = text;
      return this.#append(open, { text: "", extra }, events);
    }
    if (open.pending !== "" && text.trim() !== "") open.pending = "";
    this.#append(open, said, events);
  }

  /** Callers answer calls by their ids, so no two have the same. */
  #idOf({ id }: OpenCall): string {
    const own = id === undefined || this.#usedIds.has(id) ? this.#services.newToolCallId() : id;
    this.#usedIds.add(own);
    return own;
  }

  #append({ call }: OpenCall, { text, extra }: Said, events: ChatEvent[]): void {
    if (text === "" && extra === undefined) return;
    const delta = {
      type: "tool-call-delta",
      choice: this.#choice,
      call,
      arguments: text,
    } as const;
    events.push(extra === undefined ? delta : { ...delta, extra });
  }
}

function readFragment(fragment: JsonObject): Fragment {
  const custom = objectOf(fragment["custom"]);
  const body = custom ?? objectOf(fragment["function"]) ?? {};
  return {
    id: notBlank(fragment["id"]),
    index: numberOf(fragment["index"]),
    name: notBlank(body["name"]),
    kind: custom === undefined ? "function" : "custom",
    text: readArguments(body[custom === undefined ? "arguments" : "input"]),
    extra: extraOf(extraFields(fragment, knownFields.call), extraFields(body, knownFields.body)),
  };
}

/** Servers send empty and blank texts when they mean none. */
function notBlank(value: unknown): string | undefined {
  const text = textOf(value);
  return text === undefined || text.trim() === "" ? undefined : text;
}

/** Some servers send the arguments as an object instead of its JSON text. */
export function readArguments(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : wellFormedJson(value);
}

function extraOf(
  call: ExtraFields | undefined,
  body: ExtraFields | undefined,
): ToolCallExtra | undefined {
  return call === undefined && body === undefined ? undefined : { call, body };
}

function joined(
  before: ToolCallExtra | undefined,
  more: ToolCallExtra | undefined,
): ToolCallExtra | undefined {
  if (before === undefined || more === undefined) return more ?? before;
  return extraOf({ ...before.call, ...more.call }, { ...before.body, ...more.body });
}

function isRepeated(open: OpenCall, { id, name, text }: Fragment): boolean {
  return (
    id !== undefined &&
    name !== undefined &&
    text !== "" &&
    open.progress.isComplete &&
    text === open.wholeText
  );
}

function nameTooLate(): UpstreamFailure {
  return answerTooLarge(
    `more than ${mostPendingCharacters} characters of a tool call before its name`,
  );
}

/** To see where the object or list of the arguments is complete; other values never are. */
function newProgress(): JsonScan {
  return new JsonScan({ jsonDepth: Infinity, jsonValues: Infinity });
}

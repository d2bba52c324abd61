import type { ChatEvent, ToolCallKind } from "../../../domain/chat/chat.ts";
import { checkToolCallCount } from "../../shared/answer-bounds.ts";
import {
  isObject,
  nonEmpty,
  numberOf,
  objectOf,
  type JsonObject,
} from "../../shared/json-fields.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { readArguments } from "../decode-chat.ts";

interface OpenCall {
  /** Counted from 0 without gaps, independent of the upstream's numbers. */
  readonly call: number;
  readonly id: string;
  readonly kind: ToolCallKind;
  name: string;
  hasStarted: boolean;
  /** Arguments that arrived before the name. */
  pending: string;
}

/**
 * Limit on the characters of arguments that are held until the names of their calls arrive, as in
 * one event.
 */
const mostPendingCharacters = 4 * 1024 * 1024;

/** Follows the tool calls of one choice through a stream's fragments, in linear time. */
export class ToolCallTracker {
  readonly #choice: number;
  readonly #newId: () => string;
  readonly #calls: OpenCall[] = [];
  #pendingCharacters = 0;
  readonly #byId = new Map<string, OpenCall>();
  /** The latest call with each of the upstream's numbers. */
  readonly #byIndex = new Map<number, OpenCall>();

  constructor(choice: number, newId: () => string) {
    this.#choice = choice;
    this.#newId = newId;
  }

  get count(): number {
    return this.#calls.length;
  }

  read(fragments: readonly unknown[] | undefined, events: ChatEvent[]): void {
    for (const fragment of fragments ?? []) {
      if (isObject(fragment)) this.#readFragment(fragment, events);
    }
  }

  /** Starts calls whose name never came: a nameless call is better than a lost one. */
  finish(events: ChatEvent[]): void {
    for (const open of this.#calls) if (!open.hasStarted) this.#start(open, events);
  }

  #readFragment(fragment: JsonObject, events: ChatEvent[]): void {
    const custom = objectOf(fragment["custom"]);
    const body = custom ?? objectOf(fragment["function"]) ?? {};
    const name = nonEmpty(body["name"]);
    const open = this.#find(fragment, name) ?? this.#open(fragment, custom !== undefined);
    if (open.name === "") open.name = name ?? "";
    const text = readArguments(body[custom === undefined ? "arguments" : "input"]);
    if (!open.hasStarted) {
      this.#pendingCharacters += text.length;
      if (this.#pendingCharacters > mostPendingCharacters) throw nameTooLate();
      open.pending += text;
      if (open.name !== "") this.#start(open, events);
    } else this.#append(open, text, events);
  }

  /**
   * By id where it is known. Some servers give parallel calls the same index, no index or no id,
   * and some give every fragment of one call a new id: a name then begins a call.
   */
  #find(fragment: JsonObject, name: string | undefined): OpenCall | undefined {
    const id = nonEmpty(fragment["id"]);
    const known = id === undefined ? undefined : this.#byId.get(id);
    if (known !== undefined) return known;
    const index = numberOf(fragment["index"]);
    const latest = index === undefined ? this.#calls.at(-1) : this.#byIndex.get(index);
    if (latest === undefined || name === undefined || latest.name === "") return latest;
    return id === undefined && name === latest.name ? latest : undefined;
  }

  #open(fragment: JsonObject, isCustom: boolean): OpenCall {
    const call = this.#calls.length;
    checkToolCallCount(call + 1);
    const index = numberOf(fragment["index"]);
    const open: OpenCall = {
      call,
      id: nonEmpty(fragment["id"]) ?? this.#newId(),
      kind: isCustom ? "custom" : "function",
      name: "",
      hasStarted: false,
      pending: "",
    };
    this.#calls.push(open);
    this.#byId.set(open.id, open);
    if (index !== undefined) this.#byIndex.set(index, open);
    return open;
  }

  #start(open: OpenCall, events: ChatEvent[]): void {
    open.hasStarted = true;
    const { call, id, kind, name } = open;
    events.push({ type: "tool-call-start", choice: this.#choice, call, id, kind, name });
    this.#pendingCharacters -= open.pending.length;
    this.#append(open, open.pending, events);
    open.pending = "";
  }

  #append({ call }: OpenCall, text: string, events: ChatEvent[]): void {
    if (text === "") return;
    events.push({ type: "tool-call-delta", choice: this.#choice, call, arguments: text });
  }
}

function nameTooLate(): UpstreamFailure {
  const message = `a tool call has more than ${mostPendingCharacters} characters before its name`;
  return new UpstreamFailure({ kind: "broken-answer", message });
}

import { hashText } from "../answer/random.ts";
import { isRecord, type JsonRecord, listOf, recordOf, stringOf } from "../json.ts";
import type { Frame, Reply } from "../reply.ts";
import { errorReply, WireError } from "./errors.ts";
import { isProfile, isQuirk, profiles, type Quirk, type ServerBehaviour } from "./profiles.ts";

/** A model named `profile-NAME...` is at that server, and `quirk-NAME...` adds one to the usual behaviour. */
export function serverOf(model: string, usual: ServerBehaviour): ServerBehaviour {
  const name = Object.keys(profiles).find((each) => model.includes(`profile-${each}`));
  const server = name !== undefined && isProfile(name) ? profiles[name] : usual;
  const more = [...model.matchAll(/quirk-([a-z_]+)/g)].map(([, each = ""]) => each).filter(isQuirk);
  return more.length === 0 ? server : { ...server, quirks: [...server.quirks, ...more] };
}

export function errorOfServer(error: WireError, { overflow, error: form }: ServerBehaviour): Reply {
  const isOverflow = error.body.code === "context_length_exceeded";
  const message = isOverflow ? (overflow ?? error.message) : error.message;
  const told = new WireError(error.status, { ...error.body, message }, error.headers);
  return form === undefined ? errorReply(told) : errorReply(told, JSON.stringify(form(told)));
}

const refusal = (message: string): WireError => new WireError(400, { message });

/** A chat request as the server reads it. Throws `WireError` if it refuses it. */
export function asRead(body: JsonRecord, server: ServerBehaviour): JsonRecord {
  const has = (quirk: Quirk): boolean => server.quirks.includes(quirk);
  const messages = listOf(body["messages"]).map(recordOf);
  if (has("streams_only") && body["stream"] !== true) {
    throw refusal("parameter.enable_thinking must be set to false for non-streaming calls");
  }
  if (has("no_developer") && messages.some(({ role }) => role === "developer")) {
    throw refusal("Unexpected message role.");
  }
  if (has("no_image_urls") && messages.some(hasImageUrl)) throw refusal("invalid image input");
  for (const message of messages) {
    const calls = listOf(message["tool_calls"]).map(recordOf);
    if (calls.length === 0) continue;
    if (has("needs_thoughts") && typeof message["reasoning_content"] !== "string") {
      throw refusal("Missing `reasoning_content` field in the assistant message");
    }
    if (has("needs_signatures")) checkSignatures(calls);
  }
  const {
    max_completion_tokens: cap,
    n: choices,
    stream,
    stream_options: streamOptions,
    ...read
  } = body;
  return {
    ...read,
    ...(has("max_tokens_only") ? {} : { max_completion_tokens: cap }),
    ...(has("one_choice") ? {} : { n: choices }),
    ...(has("ignores_stream") ? {} : { stream, stream_options: streamOptions }),
  };
}

function hasImageUrl({ content }: JsonRecord): boolean {
  return listOf(content).some((part) =>
    stringOf(recordOf(recordOf(part)["image_url"])["url"]).startsWith("http"),
  );
}

/** Of parallel calls the first alone is signed. */
function checkSignatures([first, ...others]: readonly JsonRecord[]): void {
  const signed = signatureIn(first);
  if (signed === undefined) {
    throw refusal("Function call is missing a thought_signature in functionCall parts.");
  }
  const isKnown = signed === signatureOf(first) || signed === "skip_thought_signature_validator";
  if (isKnown && others.every((call) => signatureIn(call) === undefined)) return;
  throw refusal("Corrupted thought signature: thought_signature.");
}

function signatureIn(call: JsonRecord | undefined): string | undefined {
  const signature = recordOf(recordOf(call?.["extra_content"])["google"])["thought_signature"];
  return typeof signature === "string" ? signature : undefined;
}

function signatureOf(call: JsonRecord | undefined): string {
  const name = stringOf(recordOf(call?.["function"])["name"]);
  return Buffer.from(`signed/${hashText(name)}+`).toString("base64");
}

/** Throws `WireError` if the server refuses these inputs of embeddings. */
export function checkInputs(input: unknown, server: ServerBehaviour): void {
  const inputs = listOf(input);
  const hasIds = inputs.some((each) => typeof each === "number" || Array.isArray(each));
  if (hasIds && server.quirks.includes("no_token_ids")) throw refusal("input must be a string");
  if (inputs.length <= 10 || !server.quirks.includes("ten_inputs")) return;
  throw refusal("batch size is invalid, it should not be larger than 10.");
}

/** A whole answer as the server writes it. */
export function asWritten(body: JsonRecord, server: ServerBehaviour): JsonRecord {
  return createWriter(server)(body);
}

/** One chunk of a stream before it is framed. */
export interface Chunk {
  readonly kind: "role" | "content" | "finish" | "usage";
  readonly body: Readonly<Record<string, unknown>>;
  /** The number of completion tokens in it. */
  readonly tokens: number;
}

/** The chunks of a stream as the server writes them. */
export function* streamOfServer(
  chunks: Iterable<Chunk>,
  server: ServerBehaviour,
): Generator<Chunk, void, void> {
  const write = createWriter(server);
  const isWhole = server.quirks.includes("calls_whole");
  let isFirst = server.quirks.includes("filter_results");
  for (const chunk of isWhole ? withWholeCalls(chunks) : chunks) {
    if (isFirst) {
      const results = [{ prompt_index: 0, content_filter_results: {} }];
      const body = { ...chunk.body, choices: [], prompt_filter_results: results };
      yield { kind: "role", tokens: 0, body };
    }
    isFirst = false;
    yield { ...chunk, body: write(chunk.body) };
  }
}

/** Comments before an answer. */
export function* beforeAnswer(
  frames: Iterable<Frame>,
  server: ServerBehaviour,
): Generator<Frame, void, void> {
  if (server.quirks.includes("keep_alives")) {
    for (let count = 0; count < 2; count += 1) yield { data: ": keep-alive\n\n", tokens: 0 };
  }
  yield* frames;
}

/** Joins the pieces of each call. */
function* withWholeCalls(chunks: Iterable<Chunk>): Generator<Chunk, void, void> {
  const open = new Map<unknown, Chunk>();
  for (const chunk of chunks) {
    const choice = recordOf(listOf(chunk.body["choices"])[0]);
    const [call] = listOf(recordOf(choice["delta"])["tool_calls"]).map(recordOf);
    const before = open.get(choice["index"]);
    if (before !== undefined && call !== undefined && call["id"] === undefined) {
      open.set(choice["index"], joined(before, chunk, call));
      continue;
    }
    if (before !== undefined) yield before;
    open.delete(choice["index"]);
    if (call === undefined) yield chunk;
    else open.set(choice["index"], chunk);
  }
}

function joined(before: Chunk, { tokens }: Chunk, more: JsonRecord): Chunk {
  const [choice] = listOf(before.body["choices"]).map(recordOf);
  const delta = recordOf(choice?.["delta"]);
  const [call] = listOf(delta["tool_calls"]).map(recordOf);
  const whole = { ...call };
  for (const field of ["function", "custom"]) {
    const said = recordOf(call?.[field]);
    const added = recordOf(more[field]);
    for (const part of ["arguments", "input"]) {
      if (typeof added[part] !== "string") continue;
      whole[field] = { ...said, [part]: stringOf(said[part]) + added[part] };
    }
  }
  const choices = [{ ...choice, delta: { ...delta, tool_calls: [whole] } }];
  return { ...before, tokens: before.tokens + tokens, body: { ...before.body, choices } };
}

const googlesMark = { google: { thought: true } };

/** Writes whole answers, or the pieces of one stream in their order. */
function createWriter({ quirks: list }: ServerBehaviour): (body: JsonRecord) => JsonRecord {
  if (list.length === 0) return (body) => body;
  const has = (quirk: Quirk): boolean => list.includes(quirk);
  const thinking = new Set<unknown>();
  const writeThoughts = (index: unknown, said: JsonRecord): JsonRecord => {
    const { reasoning_content: thoughts, ...rest } = said;
    if (has("thoughts_as_reasoning") && thoughts !== undefined) {
      return { ...rest, reasoning: thoughts };
    }
    if (!has("thoughts_in_tags")) return said;
    const isOpen = thinking.has(index);
    if (typeof thoughts === "string" && typeof rest["content"] === "string") {
      const content = `<thought>${thoughts}</thought>${rest["content"]}`;
      return { ...rest, content, extra_content: googlesMark };
    }
    if (typeof thoughts === "string") {
      thinking.add(index);
      const content = isOpen ? thoughts : `<thought>${thoughts}`;
      return { ...rest, content, extra_content: googlesMark };
    }
    if (!isOpen) return rest;
    thinking.delete(index);
    return { ...rest, content: `</thought>${stringOf(rest["content"])}` };
  };
  const writeCall = (call: JsonRecord, position: number): JsonRecord => {
    const isFirst = (call["index"] ?? position) === 0;
    const isBegun = call["id"] !== undefined;
    return {
      ...call,
      ...(has("indexes_repeat") && call["index"] !== undefined ? { index: 0 } : {}),
      ...(has("ids_empty") && isBegun ? { id: "" } : {}),
      ...(has("needs_signatures") && isBegun && isFirst
        ? { extra_content: { google: { thought_signature: signatureOf(call) } } }
        : {}),
    };
  };
  const writeChoice = (choice: JsonRecord): JsonRecord => {
    const { delta, message, finish_reason: reason, index } = choice;
    const said = writeThoughts(index, recordOf(delta ?? message));
    const calls = listOf(said["tool_calls"]).map(recordOf);
    const isStop = reason === "tool_calls" && delta !== undefined && has("stop_after_calls");
    return {
      ...choice,
      [delta === undefined ? "message" : "delta"]: {
        ...(has("role_repeats") ? { role: "assistant" } : {}),
        ...said,
        ...(calls.length > 0 ? { tool_calls: calls.map(writeCall) } : {}),
      },
      finish_reason: isStop ? "stop" : reason,
    };
  };
  const writeUsage = (usage: JsonRecord): JsonRecord => {
    const { prompt_tokens_details: input, completion_tokens_details: output, ...counts } = usage;
    const thoughts = Number(recordOf(output)["reasoning_tokens"] ?? 0);
    const written = Number(counts["completion_tokens"]);
    return {
      ...counts,
      ...(has("usage_excludes_thoughts") ? { completion_tokens: written - thoughts } : {}),
      ...(has("usage_lacks_details")
        ? {}
        : { prompt_tokens_details: input, completion_tokens_details: output }),
    };
  };
  return (body) => ({
    ...body,
    choices: listOf(body["choices"]).map((choice) => writeChoice(recordOf(choice))),
    ...(isRecord(body["usage"]) ? { usage: writeUsage(body["usage"]) } : {}),
  });
}

import { isRecord, type JsonRecord, listOf, recordOf, stringOf } from "../json.ts";
import { BedrockError, invalid, modelError } from "./errors.ts";
import type { CapabilityRow } from "./capabilities.ts";

interface Message {
  readonly role: string;
  readonly content: readonly JsonRecord[];
  /** The path in error messages, such as `messages.3`. */
  readonly at: string;
}

/** Throws `BedrockError` if the turns and blocks are not a valid conversation for this model. */
export function checkConversation(body: JsonRecord, row: CapabilityRow): void {
  const messages = listOf(body["messages"]).map((message, index): Message => {
    const { role, content } = recordOf(message);
    const at = `messages.${index}`;
    return { role: stringOf(role), content: listOf(content).map(recordOf), at };
  });
  checkRoles(messages);
  for (const message of messages) checkContent(message, row);
  const usesTools = messages.some(({ content }) =>
    content.some((block) => isRecord(block["toolUse"]) || isRecord(block["toolResult"])),
  );
  if (usesTools && body["toolConfig"] === undefined) {
    throw invalid(
      "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    );
  }
  for (const [index, message] of messages.entries()) checkResults(message, messages[index - 1]);
  checkLast(messages.at(-1), row);
}

function checkRoles(messages: readonly Message[]): void {
  const [first] = messages;
  if (first?.role !== "user") {
    throw invalid("A conversation must start with a user message.");
  }
  if (messages.some(({ role }, index) => role === messages[index - 1]?.role)) {
    throw invalid("A conversation must alternate between user and assistant roles.");
  }
}

function checkContent({ role, content, at }: Message, row: CapabilityRow): void {
  if (content.length === 0) {
    throw invalid(`The content field in the Message object at ${at} is empty.`);
  }
  for (const [index, block] of content.entries()) {
    const place = `${at}.content.${index}`;
    checkText(block["text"], `The text field in the ContentBlock object at ${place}`);
    const { toolUse, toolResult } = block;
    if (isRecord(toolUse) && !isRecord(toolUse["input"])) {
      throw invalid(
        `The format of the value at ${place}.toolUse.input is invalid. Provide a json object for the field and try again.`,
      );
    }
    if (isRecord(toolResult)) checkResultContent(toolResult, place);
    for (const [kinds, owner, subject, verb] of blockOwners) {
      if (role === owner || !kinds.some((kind) => isRecord(block[kind]))) continue;
      throw invalid(`The ${subject} at ${place} ${verb} only for the ${owner} role.`);
    }
    checkToolId(stringOf(recordOf(toolUse ?? toolResult)["toolUseId"]), row);
  }
  checkDocuments(content, at);
  const results = content.filter((block) => isRecord(block["toolResult"]));
  const others = content.filter(
    (block) => !results.includes(block) && !isRecord(block["cachePoint"]),
  );
  if (results.length > 0 && others.length > 0 && !row.toolResultsWithText) {
    throw invalid(
      "Conversation blocks and tool result blocks cannot be provided in the same turn.",
    );
  }
}

/** Blocks that only one role may use, with the words of the error. */
const blockOwners = [
  [["image", "document"], "user", "image and document content blocks", "are"],
  [["toolUse"], "assistant", "toolUse content block", "is"],
  [["toolResult"], "user", "toolResult content block", "is"],
] as const;

function checkText(text: unknown, name: string): void {
  if (typeof text === "string" && text.trim() === "") {
    throw invalid(`${name} is blank. Add text to the text field, and try again.`);
  }
}

/** A result may lack content, but must not have an empty text. */
function checkResultContent(toolResult: JsonRecord, place: string): void {
  for (const [index, part] of listOf(toolResult["content"]).entries()) {
    const at = `${place}.toolResult.content.${index}`;
    checkText(recordOf(part)["text"], `The text field in the ContentBlock object at ${at}`);
  }
}

function checkToolId(id: string, row: CapabilityRow): void {
  if (id === "" || !row.hasShortToolIds || /^[a-zA-Z0-9]{9}$/.test(id)) return;
  throw modelError(`Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`);
}

function checkDocuments(content: readonly JsonRecord[], at: string): void {
  const names = content
    .map((block) => block["document"])
    .filter(isRecord)
    .map((document) => stringOf(document["name"]));
  if (names.length === 0) return;
  if (names.length > 5) throw invalid(`A message can have 5 documents, ${at} has ${names.length}.`);
  if (names.some((name) => !/^[\p{L}\p{N}\s\-()[\]]+$/u.test(name) || /\s\s/.test(name))) {
    throw invalid(
      "The document file name can only contain alphanumeric characters, whitespace characters, " +
        "hyphens, parentheses, and square brackets. The name can't contain more than one " +
        "consecutive whitespace character.",
    );
  }
  if (new Set(names).size < names.length) {
    throw invalid("Two documents of a message have the same name. Try again with unique names.");
  }
  if (content.every((block) => block["text"] === undefined)) {
    throw invalid("A text block is required in a message that has documents.");
  }
}

/** The next turn must have all results of a turn's calls, and no others. */
function checkResults({ content, at }: Message, previous: Message | undefined): void {
  const called = idsOf(previous?.content ?? [], "toolUse");
  const answered = idsOf(content, "toolResult");
  if (answered.length > called.length) {
    throw invalid(
      `The number of toolResult blocks at ${at}.content exceeds the number of toolUse blocks of ` +
        "previous turn.",
    );
  }
  const missing = called.filter((id) => !answered.includes(id));
  if (missing.length > 0) {
    throw invalid(
      `Expected toolResult blocks at ${at}.content for the following Ids: ${missing.join(",")}`,
    );
  }
}

function idsOf(content: readonly JsonRecord[], kind: "toolUse" | "toolResult"): string[] {
  return content
    .map((block) => block[kind])
    .filter(isRecord)
    .map((block) => stringOf(block["toolUseId"]));
}

/** A final assistant message is a prefill, which the model continues. */
function checkLast(last: Message | undefined, row: CapabilityRow): void {
  if (last?.role !== "assistant") return;
  if (!row.prefill) {
    throw invalid(
      "The model returned the following errors: This model does not support assistant message " +
        "prefill. The conversation must end with a user message.",
    );
  }
  if (idsOf(last.content, "toolUse").length > 0) {
    throw invalid("The conversation must not end with toolUse blocks.");
  }
  const text = last.content.at(-1)?.["text"];
  if (typeof text === "string" && text !== text.trimEnd()) {
    throw invalid(
      "The model returned the following errors: messages: final assistant content cannot end " +
        "with trailing whitespace",
    );
  }
}

/** Throws `BedrockError` for cache points that the model does not support. */
export function checkCachePoints(body: JsonRecord, row: CapabilityRow): void {
  const points = [...pointsOf(body)];
  if (points.length > 4) {
    throw modelError("A maximum of 4 blocks with cache_control may be provided.");
  }
  const [first] = points;
  if (first === undefined) return;
  if (!row.cachePoints) {
    throw new BedrockError(
      "AccessDeniedException",
      "You invoked an unsupported model or your request did not allow prompt caching. See the " +
        "documentation for more information.",
    );
  }
  const inTools = points.find(({ place }) => place.startsWith("toolConfig"));
  if (inTools !== undefined && !row.toolCachePoints) {
    throw invalid(
      `Malformed input request: #/${inTools.place.replaceAll(".", "/")}: extraneous key ` +
        "[cachePoint] is not permitted, please reformat your input and try again.",
    );
  }
  checkLifetimes(points, row);
}

interface Point {
  /** `messages.0.content.1`. */
  readonly place: string;
  readonly ttl: unknown;
}

function checkLifetimes(points: readonly Point[], row: CapabilityRow): void {
  let isShort = false;
  for (const { place, ttl } of points) {
    if (ttl !== "1h") {
      isShort = true;
      continue;
    }
    if (!row.hourCachePoints) {
      throw row.contextText === "claude"
        ? modelError(`${place}.cache_control.ttl: Extra inputs are not permitted`)
        : invalid("Extended TTL prompt caching is only supported for Anthropic models");
    }
    if (!isShort) continue;
    throw modelError(
      `${place}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' ` +
        "cache_control block. Note that blocks are processed in the following order: `tools`, " +
        "`system`, `messages`.",
    );
  }
}

/** In the order in which a model reads them. */
function* pointsOf(body: JsonRecord): Generator<Point, void, void> {
  yield* pointsIn(listOf(recordOf(body["toolConfig"])["tools"]), "toolConfig.tools");
  yield* pointsIn(listOf(body["system"]), "system");
  for (const [turn, message] of listOf(body["messages"]).entries()) {
    yield* pointsIn(listOf(recordOf(message)["content"]), `messages.${turn}.content`);
  }
}

function* pointsIn(blocks: readonly unknown[], place: string): Generator<Point, void, void> {
  for (const [index, block] of blocks.entries()) {
    const { cachePoint } = recordOf(block);
    if (isRecord(cachePoint)) yield { place: `${place}.${index}`, ttl: cachePoint["ttl"] };
  }
}

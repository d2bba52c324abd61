/** What the provider demands beyond the shapes: the order of turns, ids, and what excludes what. */
import type { ConverseRequest, ConverseTurn } from "./request-shape.ts";

/** The first rule that a body breaks, in words; undefined if it breaks none. */
export function brokenRule(body: ConverseRequest): string | undefined {
  const { messages } = body;
  for (const [index, { role }] of messages.entries()) {
    if (role !== (index % 2 === 0 ? "user" : "assistant")) return `turn ${index} is of ${role}`;
  }
  return toolRule(body) ?? contentRule(body) ?? thinkingRule(body);
}

function toolRule({ messages, toolConfig }: ConverseRequest): string | undefined {
  const used = new Set<string>();
  for (const [index, turn] of messages.entries()) {
    const results = resultIds(turn);
    const calls = index === 0 ? [] : callIds(messages[index - 1]);
    if (new Set(results).size !== results.length) return `turn ${index} answers a call twice`;
    if (results.toSorted().join() !== calls.toSorted().join()) {
      return `turn ${index} answers [${results.join()}], and the calls are [${calls.join()}]`;
    }
    const firstOther = turn.content.findIndex(
      (block) => !("toolResult" in block) && !("cachePoint" in block),
    );
    const lastResult = turn.content.findLastIndex((block) => "toolResult" in block);
    if (firstOther >= 0 && firstOther < lastResult) return `turn ${index}: words before results`;
    for (const id of callIds(turn)) {
      if (used.has(id)) return `the id ${id} is used twice`;
      used.add(id);
    }
  }
  if (callIds(messages.at(-1)).length > 0) return "the last calls have no results";
  if (used.size > 0 && toolConfig === undefined) return "there are calls and no toolConfig";
  return toolChoiceRule(toolConfig);
}

function toolChoiceRule(toolConfig: ConverseRequest["toolConfig"]): string | undefined {
  if (toolConfig === undefined) return undefined;
  const names = toolConfig.tools.flatMap((tool) =>
    "toolSpec" in tool ? [tool.toolSpec.name] : [],
  );
  if (new Set(names).size !== names.length) return "two tools have one name";
  const { toolChoice } = toolConfig;
  if (toolChoice === undefined || !("tool" in toolChoice)) return undefined;
  return names.includes(toolChoice.tool.name) ? undefined : "the chosen tool is not offered";
}

function isLongBehindShort({ messages, system = [], toolConfig }: ConverseRequest): boolean {
  const ttls = [toolConfig?.tools ?? [], system, ...messages.map(({ content }) => content)].flatMap(
    ttlsOf,
  );
  const firstShort = ttls.findIndex((ttl) => ttl !== "1h");
  return firstShort >= 0 && ttls.lastIndexOf("1h") > firstShort;
}

function ttlsOf(blocks: readonly object[]): readonly unknown[] {
  return blocks.flatMap((block) => {
    const point = "cachePoint" in block ? block.cachePoint : undefined;
    if (typeof point !== "object" || point === null) return [];
    return ["ttl" in point ? point.ttl : undefined];
  });
}

function contentRule(body: ConverseRequest): string | undefined {
  const { messages, system = [], toolConfig } = body;
  let cachePoints = system.filter((block) => "cachePoint" in block).length;
  cachePoints += (toolConfig?.tools ?? []).filter((tool) => "cachePoint" in tool).length;
  if (system[0] !== undefined && "cachePoint" in system[0]) return "a cache point comes first";
  const documentNames = new Set<string>();
  for (const { content } of messages) {
    if (content[0] !== undefined && "cachePoint" in content[0]) return "a cache point comes first";
    cachePoints += content.filter((block) => "cachePoint" in block).length;
    const documents = content.flatMap((block) =>
      "document" in block ? [block.document.name] : [],
    );
    if (documents.length > 5) return "a turn has more than five documents";
    if (documents.length > 0 && !content.some((block) => "text" in block)) {
      return "documents stand without a text";
    }
    for (const name of documents) {
      if (documentNames.has(name)) return `two documents have the name ${name}`;
      documentNames.add(name);
    }
  }
  if (isLongBehindShort(body)) return "a cache point of an hour stands behind a shorter one";
  if (cachePoints > 4) return "there are more than four cache points";
  const last = messages.at(-1)?.content.at(-1);
  const isTrimmed = last === undefined || !("text" in last) || last.text === last.text.trimEnd();
  const endsWithAssistant = messages.at(-1)?.role === "assistant";
  return endsWithAssistant && !isTrimmed ? "the prefill ends in white space" : undefined;
}

function thinkingRule(body: ConverseRequest): string | undefined {
  const { thinking, top_k: topK, tool_choice: choice } = body.additionalModelRequestFields ?? {};
  const toolChoice = body.toolConfig?.toolChoice;
  if (choice !== undefined && toolChoice !== undefined) return "two tool choices";
  if (!isThinking(thinking)) return undefined;
  const { temperature, topP, maxTokens = 0 } = body.inferenceConfig ?? {};
  if (temperature !== undefined || topP !== undefined || topK !== undefined) {
    return "thinking with a chosen sampling";
  }
  if ((thinking.budget_tokens ?? 0) >= maxTokens) return "thinking takes the whole answer";
  const isForced = toolChoice !== undefined && !("auto" in toolChoice);
  return isForced || isForcing(choice) ? "thinking with a forced tool" : undefined;
}

function isThinking(value: unknown): value is { readonly budget_tokens?: number } {
  return (
    typeof value === "object" && value !== null && "type" in value && value.type !== "disabled"
  );
}

function isForcing(choice: unknown): boolean {
  return (
    typeof choice === "object" && choice !== null && "type" in choice && choice.type !== "auto"
  );
}

function resultIds(turn: ConverseTurn): readonly string[] {
  return turn.content.flatMap((block) =>
    "toolResult" in block ? [block.toolResult.toolUseId] : [],
  );
}

function callIds(turn: ConverseTurn | undefined): readonly string[] {
  const content = turn?.role === "assistant" ? turn.content : [];
  return content.flatMap((block) => ("toolUse" in block ? [block.toolUse.toolUseId] : []));
}

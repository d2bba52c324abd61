import type { Prompt, Tool, Turn } from "./prompt.ts";
import { countTokens } from "./tokenizer.ts";

const tokensPerMessage = 3;
const tokensPerReply = 3;
const tokensPerTool = 7;
const tokensPerAttachment = 85;

/** Counts the tokens of the conversation, its tools and its output schema. */
export function countPromptTokens(prompt: Prompt): number {
  let total = tokensPerReply;
  for (const turn of prompt.turns) total += countTurn(turn);
  for (const tool of prompt.tools) total += countTool(tool);
  if (prompt.output.kind === "schema") total += countTokens(JSON.stringify(prompt.output.schema));
  return total;
}

function countTurn(turn: Turn): number {
  let total = tokensPerMessage + 1 + countTokens(turn.text);
  if (turn.name !== undefined) total += 1 + countTokens(turn.name);
  for (const call of turn.toolCalls) total += 3 + countTokens(call.name) + countTokens(call.input);
  for (const attachment of turn.attachments) {
    // Larger attachments have more tokens.
    total += tokensPerAttachment + Math.ceil((attachment.sizeBytes ?? 0) / 1024);
  }
  return total;
}

function countTool(tool: Tool): number {
  const own = tokensPerTool + countTokens(tool.name) + countTokens(tool.description);
  return tool.kind === "function" ? own + countTokens(JSON.stringify(tool.schema)) : own;
}

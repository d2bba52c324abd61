import { expect, test } from "bun:test";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { responseWorld } from "../../../../test/support/response-world.ts";
import { chatCompletions } from "../../openai-dialect.ts";
import { parseEmbeddingRequest } from "../../embeddings/embedding-request.ts";

/** One line of a table: either the whole `body`, or fields to `send` over a valid body. */
interface Refusal {
  readonly body?: unknown;
  readonly send?: Readonly<Record<string, unknown>>;
  readonly param: string | null;
  readonly code: string | null;
  readonly message: string;
}

const tables = [
  { name: "refused-messages", base: chatBody(), parse: readChat },
  { name: "refused-fields", base: chatBody(), parse: readChat },
  { name: "refused-embeddings", base: { model: "m", input: "hi" }, parse: parseEmbeddingRequest },
];

for (const { name, base, parse } of tables) {
  const lines = (await Bun.file(`${import.meta.dir}/${name}.jsonl`).text()).trim().split("\n");
  for (const line of lines) {
    const refusal = JSON.parse(line, unfold) as Refusal;
    test(`${name}: refuses ${clip(line)}`, () => {
      const body = "body" in refusal ? refusal.body : { ...base, ...refusal.send };
      const error = refusalOf(() => parse(body));
      expect(error.status).toBe(400);
      expect(error.message).not.toContain("://");
      expect(error.toBody().error).toEqual({
        message: refusal.message,
        type: "invalid_request_error",
        param: refusal.param,
        code: refusal.code,
      });
    });
  }
}

function readChat(value: unknown): unknown {
  return chatCompletions.read({ value, text: "" }, responseWorld().callOf());
}

function chatBody() {
  return { model: "m", messages: [{ role: "user", content: "hi" }] };
}

/** Tables write long lists as `{"$repeat": length, "of": item}`. */
function unfold(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("$repeat" in value)) return value;
  const { $repeat: length, of: item } = value as { $repeat: number; of: unknown };
  return Array.from({ length }, () => item);
}

function refusalOf(parse: () => unknown): GatewayError {
  try {
    parse();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("the body was accepted");
}

function clip(line: string): string {
  return line.length > 90 ? `${line.slice(0, 90)}...` : line;
}

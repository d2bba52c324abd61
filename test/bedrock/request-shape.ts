/**
 * The provider's published shapes of the requests that Sluice sends: Converse, ConverseStream and
 * CountTokens. Every object is closed and every union has exactly one key. Written from the service's
 * description, not from the code that encodes.
 */
import { z } from "zod";

/** The service refuses texts without a visible character. */
const text = z.string().regex(/\S/);
const bytes = z.base64().min(1);
const empty = z.strictObject({});
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/);
/** Newer services take dots and colons too; older ones do not. */
const toolUseId = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/);
const jsonObject = z.record(z.string(), z.unknown());

const textBlock = z.strictObject({ text });
const cachePoint = z.strictObject({
  cachePoint: z.strictObject({ type: z.literal("default"), ttl: z.enum(["5m", "1h"]).optional() }),
});
const image = z.strictObject({
  image: z.strictObject({
    format: z.enum(["png", "jpeg", "gif", "webp"]),
    source: z.strictObject({ bytes }),
  }),
});
const document = z.strictObject({
  document: z.strictObject({
    name: z
      .string()
      .regex(/^[a-zA-Z0-9 ()[\]-]{1,200}$/)
      .regex(/^(?!.* {2})/),
    format: z.enum(["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"]),
    source: z.strictObject({ bytes }),
  }),
});
const toolUse = z.strictObject({
  toolUse: z.strictObject({ toolUseId, name: toolName, input: jsonObject }),
});
const toolResult = z.strictObject({
  toolResult: z.strictObject({
    toolUseId,
    content: z.array(z.union([textBlock, z.strictObject({ json: jsonObject }), image, document])),
    status: z.enum(["success", "error"]).optional(),
  }),
});

const reasoning = z.strictObject({
  reasoningContent: z.union([
    z.strictObject({
      reasoningText: z.strictObject({ text: z.string(), signature: z.string().min(1) }),
    }),
    z.strictObject({ redactedContent: bytes }),
  ]),
});

/** Images, documents and results belong to the user, calls to the assistant. */
const turn = z.discriminatedUnion("role", [
  z.strictObject({
    role: z.literal("user"),
    content: z.array(z.union([textBlock, cachePoint, image, document, toolResult])).min(1),
  }),
  z.strictObject({
    role: z.literal("assistant"),
    content: z.array(z.union([textBlock, cachePoint, toolUse, reasoning])).min(1),
  }),
]);

const toolSpec = z.strictObject({
  toolSpec: z.strictObject({
    name: toolName,
    description: text.optional(),
    inputSchema: z.strictObject({ json: jsonObject }),
    strict: z.boolean().optional(),
  }),
});
const toolConfig = z.strictObject({
  tools: z.array(z.union([toolSpec, cachePoint])).min(1),
  toolChoice: z
    .union([
      z.strictObject({ auto: empty }),
      z.strictObject({ any: empty }),
      z.strictObject({ tool: z.strictObject({ name: toolName }) }),
    ])
    .optional(),
});

const conversation = {
  messages: z.array(turn).min(1),
  system: z
    .array(z.union([textBlock, cachePoint]))
    .min(1)
    .optional(),
  toolConfig: toolConfig.optional(),
};

const guardrail = {
  guardrailIdentifier: z.string().regex(/^(?:[a-z0-9]+|arn:aws[a-z-]*:bedrock:.+)$/),
  guardrailVersion: z.string().regex(/^(?:[1-9][0-9]{0,7}|DRAFT)$/),
  trace: z.enum(["enabled", "disabled", "enabled_full"]).optional(),
};
const metadataText = z.string().regex(/^[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}$/);

const converse = {
  ...conversation,
  inferenceConfig: z
    .strictObject({
      maxTokens: z.int().min(1).optional(),
      temperature: z.number().min(0).max(1).optional(),
      topP: z.number().min(0).max(1).optional(),
      stopSequences: z.array(text).min(1).max(2500).optional(),
    })
    .optional(),
  additionalModelRequestFields: jsonObject.optional(),
  additionalModelResponseFieldPaths: z.array(z.string().regex(/^\/./)).optional(),
  requestMetadata: z
    .record(metadataText.min(1), metadataText)
    .refine((pairs) => Object.keys(pairs).length <= 16)
    .optional(),
  performanceConfig: z.strictObject({ latency: z.enum(["standard", "optimized"]) }).optional(),
  serviceTier: z
    .strictObject({ type: z.enum(["priority", "default", "flex", "reserved"]) })
    .optional(),
  outputConfig: z
    .strictObject({
      textFormat: z
        .strictObject({
          type: z.literal("json_schema"),
          structure: z.strictObject({
            jsonSchema: z.strictObject({
              // A text that holds JSON, not the schema itself.
              schema: z.string().refine(isJsonObject),
              name: z.string().min(1).optional(),
              description: text.optional(),
            }),
          }),
        })
        .optional(),
      effort: z.string().optional(),
    })
    .optional(),
};

export const converseRequest = z.strictObject({
  ...converse,
  guardrailConfig: z.strictObject(guardrail).optional(),
});

export const converseStreamRequest = z.strictObject({
  ...converse,
  guardrailConfig: z
    .strictObject({ ...guardrail, streamProcessingMode: z.enum(["sync", "async"]).optional() })
    .optional(),
});

export const countTokensRequest = z.strictObject({
  input: z.strictObject({ converse: z.strictObject(conversation) }),
});

export type ConverseRequest = z.infer<typeof converseRequest>;
export type ConverseTurn = z.infer<typeof turn>;

function isJsonObject(value: string): boolean {
  const parsed: unknown = JSON.parse(value);
  return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
}

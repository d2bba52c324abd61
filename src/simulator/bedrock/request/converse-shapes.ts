import type { Members, Shape } from "./shape.ts";

const document: Shape = { kind: "document" };
const blob: Shape = { kind: "blob" };
const flag: Shape = { kind: "boolean" };
const anyText: Shape = { kind: "string" };
const someText: Shape = { kind: "string", length: [1, undefined] };
const cachePoint = structure({ "type!": choice("default"), ttl: choice("5m", "1h") });
const toolName: Shape = { kind: "string", length: [1, 64], pattern: /^[a-zA-Z0-9_-]+$/ };
const toolUseId: Shape = { kind: "string", length: [1, 64], pattern: /^[a-zA-Z0-9_.:-]+$/ };
const s3Location = structure({ "uri!": someText, bucketOwner: anyText });
const bytesOrObject: Members = { bytes: blob, s3Location };

const image = structure({
  "format!": choice("png", "jpeg", "gif", "webp"),
  "source!": union(bytesOrObject),
});
const video = structure({
  "format!": choice("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"),
  "source!": union(bytesOrObject),
});
const file = structure({
  format: choice("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
  "name!": { kind: "string", length: [1, 200] },
  "source!": union({
    ...bytesOrObject,
    text: someText,
    content: { kind: "list", of: union({ text: someText }), length: [1, undefined] },
  }),
  context: anyText,
  citations: structure({ "enabled!": flag }),
});
const guardContent = union({
  text: structure({
    "text!": anyText,
    qualifiers: list(choice("grounding_source", "query", "guard_content")),
  }),
  image: structure({ "format!": choice("png", "jpeg"), "source!": union({ bytes: blob }) }),
});
const toolResult = structure({
  "toolUseId!": toolUseId,
  "content!": list(union({ text: anyText, json: document, image, document: file, video })),
  status: choice("success", "error"),
  type: anyText,
});

const contentBlock = union({
  text: anyText,
  image,
  document: file,
  video,
  toolUse: structure({
    "toolUseId!": toolUseId,
    "name!": toolName,
    "input!": document,
    type: choice("server_tool_use"),
  }),
  toolResult,
  guardContent,
  cachePoint,
  reasoningContent: union({
    reasoningText: structure({ "text!": anyText, signature: anyText }),
    redactedContent: blob,
  }),
  citationsContent: structure({ content: list(union({ text: anyText })), citations: document }),
});

const tool = union({
  toolSpec: structure({
    "name!": toolName,
    description: someText,
    "inputSchema!": union({ json: document }),
    strict: flag,
  }),
  systemTool: structure({ "name!": toolName }),
  cachePoint,
});

const conversation: Members = {
  messages: list(
    structure({ "role!": choice("user", "assistant"), "content!": list(contentBlock) }),
  ),
  system: list(union({ text: someText, guardContent, cachePoint })),
  toolConfig: structure({
    "tools!": { kind: "list", of: tool, length: [1, undefined] },
    toolChoice: union({
      auto: structure({}),
      any: structure({}),
      tool: structure({ "name!": toolName }),
    }),
  }),
  additionalModelRequestFields: document,
};

const jsonSchema = structure({ "schema!": anyText, name: anyText, description: anyText });

/** The body of Converse and, with one more field, of ConverseStream. */
export function converseShape(isStreamed: boolean): Shape {
  return structure({
    ...conversation,
    inferenceConfig: structure({
      maxTokens: { kind: "integer", range: [1, undefined] },
      temperature: { kind: "float", range: [0, 1] },
      topP: { kind: "float", range: [0, 1] },
      stopSequences: { kind: "list", of: someText, length: [0, 2500] },
    }),
    guardrailConfig: structure({
      "guardrailIdentifier!": {
        kind: "string",
        length: [0, 2048],
        pattern:
          /^(?:[a-z0-9]+|arn:aws(?:-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail\/[a-z0-9]+)$/,
      },
      "guardrailVersion!": { kind: "string", pattern: /^(?:[1-9][0-9]{0,7}|DRAFT)$/ },
      trace: choice("enabled", "disabled", "enabled_full"),
      ...(isStreamed ? { streamProcessingMode: choice("sync", "async") } : {}),
    }),
    promptVariables: { kind: "map", key: anyText, value: union({ text: anyText }) },
    additionalModelResponseFieldPaths: {
      kind: "list",
      of: { kind: "string", length: [1, 256] },
      length: [0, 10],
    },
    requestMetadata: {
      kind: "map",
      key: metadataText(1),
      value: metadataText(0),
      length: [1, 16],
    },
    performanceConfig: structure({ latency: choice("standard", "optimized") }),
    serviceTier: structure({ "type!": choice("priority", "default", "flex", "reserved") }),
    outputConfig: structure({
      textFormat: structure({
        "type!": choice("json_schema"),
        "structure!": union({ jsonSchema }),
      }),
      effort: choice("low", "medium", "high", "xhigh", "max"),
    }),
  });
}

export const countTokensShape: Shape = structure({
  "input!": union({
    converse: structure(conversation),
    invokeModel: structure({ "body!": blob }),
  }),
});

function metadataText(shortest: number): Shape {
  return { kind: "string", length: [shortest, 256], pattern: /^[a-zA-Z0-9\s:_@$#=/+,.-]*$/ };
}

/** Members whose names end in `!` are required. */
function structure(named: Members): Shape {
  const required = Object.keys(named).filter((name) => name.endsWith("!"));
  const members = Object.entries(named).map(
    ([name, shape]) => [name.replace("!", ""), shape] as const,
  );
  return {
    kind: "structure",
    members: Object.fromEntries(members),
    required: required.map((name) => name.slice(0, -1)),
  };
}

function union(members: Members): Shape {
  return { kind: "union", members };
}

function list(of: Shape): Shape {
  return { kind: "list", of };
}

function choice(...values: readonly string[]): Shape {
  return { kind: "string", values };
}

import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { bedrockGatewayOf, converse } from "./bedrock-provider.ts";
import { gatewayOf, startProvider } from "./provider.ts";

const model = "chat-model";
const user = { role: "user", content: "Hi" };
const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };
const result = { role: "tool", tool_call_id: "c1", content: "done" };
const image = "data:image/png;base64,iVBORw0KGgo=";

const fullOfNulls = {
  model,
  messages: [
    { role: "system", content: "Be brief.", name: null },
    {
      role: "user",
      name: null,
      content: [
        { type: "text", text: "Hi", annotations: null, cache_control: null },
        { type: "image_url", image_url: { url: image, detail: null } },
      ],
    },
    {
      role: "assistant",
      content: null,
      name: null,
      refusal: null,
      audio: null,
      function_call: null,
      tool_calls: [{ ...call, index: null, function: { ...call.function, output: null } }],
    },
    { ...result, name: null },
  ],
  temperature: null,
  metadata: null,
  stream_options: null,
  tools: [
    {
      type: "function",
      strict: null,
      function: { name: "f", description: null, parameters: null, strict: null },
    },
  ],
  tool_choice: {
    type: "allowed_tools",
    allowed_tools: {
      mode: "auto",
      tools: [{ type: "function", custom: null, function: { name: "f", description: null } }],
    },
  },
  response_format: {
    type: "json_schema",
    json_object: null,
    json_schema: {
      name: "a",
      description: null,
      strict: null,
      schema: { type: "object", title: null, properties: { x: { const: null } } },
    },
  },
};

test("what is null in a request is not sent, at any depth", async () => {
  await using provider = startProvider();
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/chat/completions", fullOfNulls);
  expect(response.status).toBe(200);
  expect(provider.requests[0]?.body).toEqual({
    model: "provider-model",
    messages: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Hi" },
          { type: "image_url", image_url: { url: image } },
        ],
      },
      // The one field that OpenAI documents as null; some servers require it.
      { role: "assistant", content: null, tool_calls: [call] },
      result,
    ],
    tools: [{ type: "function", function: { name: "f" } }],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] },
    },
    response_format: {
      type: "json_schema",
      json_schema: { name: "a", schema: { type: "object", properties: { x: { const: null } } } },
    },
  });
});

test("plain formats of answers and files lose their nulls as well", async () => {
  await using provider = startProvider();
  await using gateway = await gatewayOf([provider]);
  const file = { type: "file", file: { file_data: "data:text/plain;base64,YQ==" } };
  await gateway.post("/v1/chat/completions", {
    model,
    messages: [{ role: "user", content: [{ ...file, file: { ...file.file, file_id: null } }] }],
    response_format: { type: "text", json_schema: null },
    web_search_options: { user_location: null, search_context_size: null },
    prompt_cache_options: { ttl: null },
  });
  expect(provider.requests[0]?.body).toEqual({
    model: "provider-model",
    messages: [{ role: "user", content: [file] }],
    response_format: { type: "text" },
    web_search_options: {},
    prompt_cache_options: {},
  });
});

test("nulls in fields that a server's operator lets through are the caller's", async () => {
  await using provider = startProvider();
  await using gateway = await gatewayOf([provider], {
    upstream: "forward_fields: [chat_template_kwargs, guided_json]",
  });
  const own = { chat_template_kwargs: { thinking: null }, guided_json: { default: null } };
  await gateway.post("/v1/chat/completions", { model, messages: [user], ...own });
  expect(provider.requests[0]?.body).toMatchObject(own);
});

test("nulls of an embedding request are not sent either", async () => {
  await using provider = startProvider(() =>
    Response.json({ object: "list", data: [{ index: 0, embedding: [1, 2] }], usage: {} }),
  );
  await using gateway = await gatewayOf([provider]);
  await gateway.post("/v1/embeddings", {
    model: "embedding-model",
    input: "a",
    dimensions: null,
    user: null,
    input_type: null,
  });
  expect(Object.values(provider.requests[0]?.body ?? {})).not.toContain(null);
  expect(provider.requests[0]?.body).not.toContainAnyKeys(["dimensions", "user", "input_type"]);
});

const noArguments = { type: "object", properties: {} };
const reference = { $ref: "#/$defs/a", $defs: { a: {} } };
/** Schemas of a tool's parameters, and as what they are sent. */
const schemas: readonly (readonly [string, object, object])[] = [
  ["an empty schema", {}, noArguments],
  ["no properties", { type: "object", properties: null, required: null }, noArguments],
  ["a null type", { type: null, properties: { a: { type: null } } }, object({ a: {} })],
  ["a type or null", { type: ["object", "null"], properties: {} }, noArguments],
  [
    "nulls in lists",
    { ...object({ a: { type: "string" } }), required: ["a", null] },
    { ...object({ a: { type: "string" } }), required: ["a"] },
  ],
  [
    "null keywords at any depth",
    object({ a: { type: "array", items: { enum: null, title: null } }, b: { anyOf: [null, {}] } }),
    object({ a: { type: "array", items: {} }, b: { anyOf: [{}] } }),
  ],
  ["null for a property", object({ a: null }), object({ a: {} })],
  [
    "a choice that the type rules out",
    object({ a: { type: "string", enum: ["x", null] } }),
    object({ a: { type: "string", enum: ["x"] } }),
  ],
  ["a reference", reference, { ...reference, type: "object" }],
  ...[
    { a: { type: ["string", "null"], enum: ["x", null], default: null } },
    { a: { const: null, examples: [null], example: null } },
    { default: { type: "string" }, type: { type: "null" } },
  ].map((properties) => ["what is a value", object(properties), object(properties)] as const),
];

function object(properties: object): object {
  return { type: "object", properties };
}

test("the schema of a tool is sent as one of an object, without nulls", async () => {
  await using provider = startProvider();
  await using gateway = await gatewayOf([provider]);
  await using aws = startProvider(() => converse({ text: "Hi" }));
  await using bedrock = await bedrockGatewayOf(aws);
  for (const [why, parameters, sent] of schemas) {
    const definition = { name: "f", parameters };
    for (const offered of [{ tools: [asTool(definition)] }, { functions: [definition] }]) {
      const body = { model, messages: [user], ...offered };
      for (const each of [gateway, bedrock]) {
        expect((await each.post("/v1/chat/completions", body)).status).toBe(200);
      }
      const path = "tools" in offered ? "tools.0.function" : "functions.0";
      for (const [asked, place] of [
        [provider, `${path}.parameters`],
        [aws, "toolConfig.tools.0.toolSpec.inputSchema.json"],
      ] as const) {
        const found = at(asked.requests.at(-1)?.body, place);
        expect({ why, schema: found }).toEqual({ why, schema: sent });
      }
    }
  }
});

test("a tool whose schema is not that of an object is refused before any server is asked", async () => {
  await using provider = startProvider();
  await using gateway = await gatewayOf([provider]);
  await using aws = startProvider();
  await using bedrock = await bedrockGatewayOf(aws);
  const fine = { name: "f", parameters: { type: "object" } };
  for (const type of ["string", ["string", "null"], "null", 7]) {
    const wrong = { name: "g", parameters: { type } };
    for (const [param, offered] of [
      ["tools[1].function.parameters", { tools: [fine, wrong].map(asTool) }],
      ["functions[1].parameters", { functions: [fine, wrong] }],
    ] as const) {
      for (const each of [gateway, bedrock]) {
        const body = { model, messages: [user], ...offered };
        const response = await each.post("/v1/chat/completions", body);
        expect(response.status).toBe(400);
        expect(await errorOf(response)).toMatchObject({
          code: "invalid_function_parameters",
          param,
          message:
            "Invalid schema for function 'g': schema must be a JSON Schema of " +
            `'type: "object"', got 'type: ${JSON.stringify(type)}'.`,
        });
      }
    }
  }
  expect([...provider.requests, ...aws.requests]).toEqual([]);
});

/** What is found in a body by names and indexes. */
function at(body: unknown, path: string): unknown {
  return path.split(".").reduce((value, name) => (value as Record<string, unknown>)[name], body);
}

function asTool(definition: object): object {
  return { type: "function", function: definition };
}

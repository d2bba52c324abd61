import { expect, test } from "bun:test";
import { z } from "zod";
import { apiForm, entityForm, viewAs } from "./api-form.ts";

const entity = {
  id: "tok_1",
  createdAt: 0,
  endedAt: undefined,
  firstEventMs: 1.26,
  limits: { requestsPerMinute: 1 },
  scopes: ["read"],
  passwordHash: "$argon2id$...",
};

test("a view has the fields that its schema names, in its order, and no others", () => {
  const schema = z.object({
    scopes: z.array(z.string()),
    id: z.string(),
    created_at: z.string(),
    ended_at: z.string().nullable(),
    first_event_ms: z.number(),
    limits: z.object({ requests_per_minute: z.int() }),
    user: z.string(),
  });
  const view = viewAs(schema, entity, { user: "ada@example.com" });
  expect(JSON.stringify(view)).toBe(
    JSON.stringify({
      scopes: ["read"],
      id: "tok_1",
      created_at: "1970-01-01T00:00:00.000Z",
      ended_at: null,
      first_event_ms: 1.3,
      limits: { requests_per_minute: 1 },
      user: "ada@example.com",
    }),
  );
});

test("a field that an entity leaves out is null", () => {
  const optional: { readonly parentId?: string } = {};
  expect(viewAs(z.object({ parent_id: z.string().nullable() }), optional)).toEqual({
    parent_id: null,
  });
  expect(apiForm(undefined)).toBeNull();
});

test("fields of a request are read back, null as undefined, and absent ones stay absent", () => {
  const request = { max_keys: 3, limits: null, note: undefined, allowed: { tokens_per_minute: 5 } };
  expect(Object.entries(entityForm(request))).toEqual([
    ["maxKeys", 3],
    ["limits", undefined],
    ["allowed", { tokensPerMinute: 5 }],
  ]);
});

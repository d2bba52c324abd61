import { z } from "zod";
import { rotatedKeySchema } from "../../src/control/contract/keys.ts";
import { keySchema, type KeyView } from "../../src/control/contract.ts";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import type { TestGateway } from "./gateway.ts";

export type RotatedKey = z.infer<typeof rotatedKeySchema>;

export const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } });

/** The operator of a gateway, with the changes to keys that tests make. */
export class Operator {
  readonly #gateway: TestGateway;

  constructor(gateway: TestGateway) {
    this.#gateway = gateway;
  }

  /** A rotation with an `Idempotency-Key`, and whether its answer was replayed. */
  async rotateOnce(keyId: string, wish: object, idempotencyKey: string) {
    const local = readLocalAccess(this.#gateway.config.dataDir);
    const response = await fetch(`${this.#gateway.adminUrl}/admin/v1/keys/${keyId}/rotate`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${local?.token}`,
        "content-type": "application/json",
        "idempotency-key": idempotencyKey,
      },
      body: JSON.stringify(wish),
    });
    const isReplayed = response.headers.get("idempotent-replayed") === "true";
    return { status: response.status, isReplayed, text: await response.text() };
  }

  async rotate(keyId: string, wish: object = {}): Promise<RotatedKey> {
    const path = `/admin/v1/keys/${keyId}/rotate`;
    const response = await this.#gateway.admin("POST", path, wish);
    return rotatedKeySchema.parse(await response.json());
  }

  key(keyId: string): Promise<KeyView> {
    return this.#read(keySchema, `/admin/v1/keys/${keyId}`);
  }

  /** Changes a key, application or account at its current revision. */
  async change(path: string, fields: object): Promise<number> {
    const { revision } = await this.#read(z.object({ revision: z.int() }), path);
    const response = await this.#gateway.admin("PATCH", path, { revision, ...fields });
    await response.text();
    return response.status;
  }

  async revoke(keyId: string): Promise<number> {
    const response = await this.#gateway.admin("DELETE", `/admin/v1/keys/${keyId}`);
    await response.text();
    return response.status;
  }

  async #read<Answer>(schema: z.ZodType<Answer>, path: string): Promise<Answer> {
    const response = await this.#gateway.admin("GET", path);
    return schema.parse(await response.json());
  }
}

import { createHash, createHmac } from "node:crypto";

export interface WebhookMessage {
  readonly body: string;
  /** `whsec_` and the key in base64. */
  readonly secret: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

/** Headers of the specification of Standard Webhooks. An equal body has an equal id. */
export function signWebhook({ body, secret, nowMs }: WebhookMessage) {
  const id = `msg_${createHash("sha256").update(body).digest("hex").slice(0, 32)}`;
  const timestamp = String(Math.floor(nowMs / 1000));
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}

import { Webhook } from "standardwebhooks";
import { z } from "zod";

const row = z.looseObject({ id: z.string() });
const payload = z.union([
  z.object({ type: z.literal("usage.recorded"), data: z.array(row) }),
  z.object({ type: z.enum(["budget.threshold", "budget.exhausted"]), data: row }),
  z.object({ type: z.literal("usage.repriced"), data: z.looseObject({ run: z.string() }) }),
]);
type Row = z.output<typeof row>;

export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  /** Ids of the rows of accepted requests, in order. */
  readonly rows: readonly Row[];
  /** Events of budgets in accepted requests, in order, repeats included. */
  readonly alerts: readonly { readonly type: string; readonly data: Row }[];
  /** Events of runs that priced calls again. */
  readonly repriced: readonly { readonly run: string }[];
  /** `webhook-id` of every request, refused ones included. */
  readonly messages: readonly string[];
  /** Status of the answers. */
  status: number;
}

export const webhookSecret = `whsec_${Buffer.from("a key of at least 24 bytes").toString("base64")}`;

/** Accepts events whose signature is right. */
export function startWebhookReceiver(): WebhookReceiver {
  const rows: Row[] = [];
  const alerts: { type: string; data: Row }[] = [];
  const repriced: { run: string }[] = [];
  const messages: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text();
      messages.push(request.headers.get("webhook-id") ?? "");
      if (receiver.status !== 200) {
        const headers = { location: "http://127.0.0.1:1/elsewhere" };
        return new Response(null, { status: receiver.status, headers });
      }
      const sent = new Webhook(webhookSecret).verify(body, Object.fromEntries(request.headers));
      const event = payload.parse(sent);
      if (event.type === "usage.recorded") rows.push(...event.data);
      else if (event.type === "usage.repriced") repriced.push(event.data);
      else alerts.push(event);
      return new Response(null, { status: 204 });
    },
  });
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${server.port}/usage`,
    rows,
    alerts,
    repriced,
    messages,
    status: 200,
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return receiver;
}

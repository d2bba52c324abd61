import { Webhook } from "standardwebhooks";
import { z } from "zod";

const payload = z.object({
  type: z.literal("usage.recorded"),
  data: z.array(z.looseObject({ id: z.string() })),
});

export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  /** Ids of the rows of accepted requests, in order. */
  readonly rows: readonly z.output<typeof payload>["data"][number][];
  /** `webhook-id` of every request, refused ones included. */
  readonly messages: readonly string[];
  /** Status of the answers. */
  status: number;
}

export const webhookSecret = `whsec_${Buffer.from("a key of at least 24 bytes").toString("base64")}`;

/** Accepts events whose signature is right. */
export function startWebhookReceiver(): WebhookReceiver {
  const rows: z.output<typeof payload>["data"] = [];
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
      rows.push(...payload.parse(sent).data);
      return new Response(null, { status: 204 });
    },
  });
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${server.port}/usage`,
    rows,
    messages,
    status: 200,
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return receiver;
}

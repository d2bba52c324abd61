import { endingWith } from "../../src/domain/waiting/end-signal.ts";
import { openAiDialect } from "../../src/dialects/openai-dialect.ts";
import type { Key } from "../../src/domain/keys/key.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { ChatEvent } from "../../src/domain/chat/answer.ts";
import type { Call } from "../../src/snapshot/call.ts";
import { type ChatCall, openChatStream, runChat } from "../../src/call/chat/chat-call.ts";
import { runEmbeddings } from "../../src/call/embeddings/embedding-call.ts";
import { nextOf } from "../../src/domain/waiting/flow.ts";
import type { MeteredStream } from "../../src/call/metering/metered-stream.ts";
import type { CallServices } from "../../src/call/services.ts";
import type { GatewayProcess } from "./gateway-process.ts";
import type { CallRecord } from "./records.ts";
import { violate, type World } from "./world.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { contentOf } from "../support/answer-texts.ts";

/** One caller with one call: it waits, reads, is slow, or leaves. */
export class SimulatedCaller {
  readonly #world: World;
  readonly #process: GatewayProcess;
  readonly #record: CallRecord;
  readonly #services: CallServices;
  readonly #controller = new AbortController();
  #cancelStream: () => void = () => undefined;

  constructor(record: CallRecord, process: GatewayProcess, world: World) {
    this.#world = world;
    this.#process = process;
    this.#record = record;
    this.#services = process.servicesFor(record.plan.id);
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { plan } = this.#record;
    const afterMs = plan.leave?.afterMs;
    const { clock } = this.#process;
    if (afterMs !== undefined) clock.schedule(() => this.#leave(), afterMs);
    const call = this.#makeCall();
    try {
      if (plan.kind === "stream") await this.#stream(call);
      else if (plan.kind === "whole") await this.#whole(call);
      else await this.#embed(call);
      this.#end();
    } catch (error) {
      this.#fail(error);
    }
  }

  #makeCall(): Call {
    const { plan } = this.#record;
    const { time } = this.#world;
    const { clock, snapshot, environment } = this.#process;
    const receivedAt = clock.monotonic();
    this.#record.process = this.#process.name;
    this.#record.arrivedAt = time.now;
    const { deadlineMs, capacity, session } = plan;
    if (deadlineMs !== undefined) this.#record.deadlineAt = time.now + deadlineMs;
    const caller = this.#process.callerOf(plan.key, plan.secret);
    this.#record.limits = caller.limits;
    this.#record.guaranteedTokens = this.#guaranteedTokens(caller.key);
    return {
      id: plan.id,
      caller,
      environment,
      snapshot,
      dialect: openAiDialect,
      signal: endingWith(this.#controller.signal),
      receivedAt,
      headers: new Headers(session === undefined ? {} : { "x-sluice-session": session }),
      options: {
        capacity,
        deadlineAt: deadlineMs === undefined ? undefined : receivedAt + deadlineMs,
      },
    };
  }

  #guaranteedTokens({ provisionedUnits, provisionedPool }: Key): number {
    const { models, pools } = this.#world.scenario;
    const model = models.find(({ alias }) => alias === this.#record.plan.alias);
    const pool = pools.find(({ name }) => name === provisionedPool);
    const isServed = model?.targets.some((target) => target.pool === pool?.name);
    return pool === undefined || isServed !== true
      ? 0
      : provisionedUnits * pool.unitTokensPerMinute;
  }

  async #stream(call: Call): Promise<void> {
    const { plan } = this.#record;
    const opening = openChatStream(call, this.#chat(true), this.#services);
    this.#cancelStream = () =>
      void opening.then(
        ({ answer }) => answer.cancel(),
        () => undefined,
      );
    const { answer, admission } = await opening;
    this.#record.servedBy = admission.capacityClass;
    this.#checkState(admission.state);
    await this.#read(answer, plan.readMs);
  }

  async #read(answer: MeteredStream, readMs: number): Promise<void> {
    const { plan } = this.#record;
    let batches = 0;
    while (!this.#hasLeft()) {
      const events = await nextOf(answer);
      if (this.#hasLeft()) return;
      if (events === undefined) {
        this.#record.isAnswered = true;
        return;
      }
      this.#take(events);
      batches += 1;
      if (plan.leave?.afterMs === undefined && batches === plan.leave?.batches) this.#leave();
      else if (readMs > 0) await this.#pause(readMs);
    }
  }

  async #whole(call: Call): Promise<void> {
    const started = await runChat(call, this.#chat(false), this.#services);
    if (this.#hasLeft()) return;
    this.#record.servedBy = started.admission.capacityClass;
    this.#checkState(started.admission.state);
    this.#deliver();
    for (const choice of started.answer.choices) {
      this.#record.texts[choice.index] = contentOf(choice) ?? "";
    }
    this.#record.isAnswered = true;
  }

  async #embed(call: Call): Promise<void> {
    const { plan } = this.#record;
    const inputs = Array.from({ length: plan.parts }, (_, index) =>
      `${plan.id} ${index} `.padEnd(40, "e"),
    );
    const request = {
      model: plan.alias,
      inputs,
      encodingFormat: "float" as const,
      dimensions: undefined,
      user: undefined,
    };
    const bodyBytes = JSON.stringify(request).length;
    const decodeTokens = () => Promise.resolve([]);
    const embedding = { request, bodyBytes, decodeTokens };
    const started = await runEmbeddings(call, embedding, this.#services);
    if (this.#hasLeft()) return;
    this.#record.servedBy = started.admission.capacityClass;
    this.#deliver();
    const { vectors } = started.answer;
    if (vectors.length !== plan.parts) {
      violate(this.#world, "answers", `${vectors.length} vectors of ${plan.parts}`, plan.id);
    }
    this.#record.isAnswered = true;
  }

  #chat(stream: boolean): ChatCall {
    const { plan } = this.#record;
    const body = {
      model: plan.alias,
      messages: [{ role: "user", content: `${plan.id} `.padEnd(plan.promptBytes, "p") }],
      ...(plan.parts > 1 && { n: plan.parts }),
      ...(plan.cap !== undefined && { max_tokens: plan.cap }),
      ...(stream && { stream }),
    };
    return { request: readChatRequest(body), bodyBytes: JSON.stringify(body).length };
  }

  #take(events: readonly ChatEvent[]): void {
    this.#deliver();
    const { texts } = this.#record;
    for (const event of events) {
      if (event.type !== "text-delta") continue;
      texts[event.choice] = (texts[event.choice] ?? "") + event.text;
    }
  }

  #deliver(): void {
    if (this.#record.firstEventAt !== undefined) return;
    this.#record.firstEventAt = this.#world.time.now;
    this.#world.log.note("first event delivered", this.#record.plan.id);
  }

  #pause(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#process.clock.schedule(resolve, durationMs);
    });
  }

  #hasLeft(): boolean {
    return this.#record.leftAt !== undefined;
  }

  /** The end of a connection reaches the signal and the stream in either order. */
  #leave(): void {
    if (this.#record.isOver || this.#hasLeft()) return;
    const { plan } = this.#record;
    this.#record.leftAt = this.#world.time.now;
    this.#world.log.note("leaves", plan.id);
    if (plan.leave?.cancelsFirst === true) this.#cancelStream();
    this.#controller.abort();
    if (plan.leave?.cancelsFirst !== true) this.#cancelStream();
  }

  #end(): void {
    this.#record.endedAt = this.#world.time.now;
    const how = this.#record.isAnswered ? "answered" : "left";
    this.#world.log.note(`ends: ${how}`, this.#record.plan.id);
  }

  #fail(error: unknown): void {
    this.#record.endedAt = this.#world.time.now;
    const { id } = this.#record.plan;
    if (!(error instanceof GatewayError)) {
      return violate(this.#world, "errors", `threw ${String(error)}`, id);
    }
    this.#record.error = error;
    this.#world.log.note(`ends: ${error.status} ${error.code} ${error.message}`, id);
    if (error.status !== 500) return;
    const cause = error.cause instanceof Error ? error.cause.stack : String(error.cause);
    violate(this.#world, "errors", `internal error: ${cause}`, id);
  }

  #checkState(state: { remainingRequests: number; remainingTokens: number }): void {
    if (state.remainingRequests >= 0 && state.remainingTokens >= 0) return;
    violate(this.#world, "I6", `told ${JSON.stringify(state)}`, this.#record.plan.id);
  }
}

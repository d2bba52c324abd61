import type { Config } from "../../config/config.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import { type AskedTargetReport, askTargets } from "../../process/doctor/ask-targets.ts";
import type { CommandIo } from "../command.ts";
import { printable } from "../output/reply-fields.ts";
import { proxiesOf } from "../serve/load-settings.ts";
import { type Finding, findingsOn } from "./finding.ts";

const timeoutMs = 20_000;
/** Some providers refuse signed requests from a clock that is further off. */
const wrongClockMs = 60_000;

/** Checks credentials, reachability and access: asks every target for a few tokens. */
export async function checkTargets(
  config: Config,
  io: CommandIo,
  probes: boolean,
): Promise<readonly Finding[]> {
  const { clock, random } = io;
  const proxies = proxiesOf(io.environment);
  const reports = await askTargets(config, { proxies, clock, random, timeoutMs, probes });
  return [checkClock(reports), ...reports.flatMap(findingsAbout)];
}

function checkClock(reports: readonly AskedTargetReport[]): Finding {
  const { ok, note, failed } = findingsOn("clock");
  const differences = reports.flatMap(({ aheadMs }) => aheadMs ?? []);
  // One server may have a wrong clock; all of them do not.
  const least = differences.toSorted((one, other) => Math.abs(one) - Math.abs(other))[0];
  if (least === undefined) return note("no target reported the time");
  if (Math.abs(least) < wrongClockMs) return ok("agrees with the targets");
  const text = `${Math.round(Math.abs(least) / 1000)} s ${least > 0 ? "behind" : "ahead of"} the targets`;
  return failed(
    text,
    "synchronise the clock with NTP: signatures and the limits per minute depend on it",
  );
}

function findingsAbout({ alias, target, failure, needs }: AskedTargetReport): readonly Finding[] {
  const { ok, warning, failed } = findingsOn("target");
  const name = `${alias} at ${target.id}`;
  if (failure === undefined) {
    const needed = needs.map(({ set, about }) =>
      warning(`${name}: ${about}`, `add \`${set}\` to the upstream ${target.upstream}`),
    );
    return [ok(`${name} answers`), ...needed];
  }
  const { kind, message, status, code, hint } = failure;
  const facts = [status, code].filter((fact) => fact !== undefined).join(" ");
  const text = `${name}: ${printable(message)}${facts === "" ? "" : ` (${facts})`}`;
  // These may also come from a busy provider.
  const isPassing = kind === "throttled" || kind === "overloaded";
  return [(isPassing ? warning : failed)(text, hint ?? adviceOn[kind])];
}

const theAnswer = "look at the provider's status page, then at its answer in the message";

const adviceOn: Readonly<Record<UpstreamFailureKind, string>> = {
  throttled: "nothing for now; if it persists, ask the provider for a larger quota",
  overloaded: "nothing for now; consider a target in another region or at another provider",
  unavailable: theAnswer,
  "connect-failed":
    "check the address, the name server, firewalls, and HTTPS_PROXY and NO_PROXY; `curl` from this machine must reach it",
  "timed-out": "check that the server is working, and the timeouts of the upstream",
  "connection-lost": theAnswer,
  "broken-answer": "check that the address is that of an API of this kind",
  "answer-too-large": "raise the limit below `answers` that the message names",
  "unfit-answer": "check that the address is that of an API of this kind",
  "bad-credential":
    "set the credential of the upstream (its variable, its file or its role), or give it the right to call this model",
  "account-blocked": "see the billing page of the account at the provider",
  "stale-credential": "get a new credential, and check the clock",
  "unknown-model":
    "check the identifier of the model, base_url and the region, and whether the provider's account has access to it",
  "context-overflow": "raise context_window to that of the model",
  unsupported: "check the kind of the model: chat or embedding",
  "invalid-request": "check the identifier of the model and the target's settings",
  "content-refused": "a guardrail refuses even this test; check its settings",
};

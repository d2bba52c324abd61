import { isLive, type Replica } from "../../domain/replica.ts";
import { replicaDifferences } from "../../domain/replica-differences.ts";
import { replicasSchema, type ReplicaView } from "../contract/replicas.ts";
import { defineOperation } from "../operation/define-operation.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { apiForm } from "../values/api-form.ts";

/** The gateway processes on the database. */
export function replicaOperations({ replicas }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "listReplicas",
      method: "GET",
      path: "/admin/v1/replicas",
      resource: "Platform",
      summary: "List the gateway processes on the database",
      description:
        "Each process writes its row every second. One that ended in order is not listed; one that is " +
        "silent is listed until `auth.snapshot_max_age` is over.",
      ...permissions.observe,
      answer: replicasSchema,
      async run({ call }) {
        requireUnbound(call.principal);
        const found = await replicas();
        const differences = replicaDifferences(found).map(({ text }) => text);
        const warnings = [...differences, ...found.flatMap(lackOf)];
        return { data: found.map(viewReplica), config_differs: differs(found), warnings };
      },
    }),
  ];
}

function viewReplica({ notReady, degraded, ...replica }: Replica): ReplicaView {
  return {
    ...apiForm(replica),
    live: isLive(replica),
    ready: notReady === undefined,
    not_ready: notReady ?? null,
    degraded: degraded ?? null,
  };
}

function lackOf(replica: Replica): readonly string[] {
  const { name, number, degraded } = replica;
  return degraded === undefined || !isLive(replica)
    ? []
    : [`process ${number} of ${name} is degraded: ${degraded}.`];
}

function differs(replicas: readonly Replica[]): boolean {
  const digests = replicas.filter(isLive).flatMap(({ configDigest = [] }) => configDigest);
  return new Set(digests).size > 1;
}

// Drives the service with the npm package aria2 over its WebSocket: calls, batches, calls within a call, notifications.
//
//     aria2_socket.mjs ADDRESS            the service; its key is in SVC_TOKEN. The package is below SVC_CLIENTS.

import assert from "node:assert/strict";
import http from "node:http";
import { createRequire } from "node:module";

const Aria2 = createRequire(`${process.env.SVC_CLIENTS}/`)("aria2");
const [host, port] = process.argv[2].split(":");

const body = Buffer.alloc(5000, "x");
const origin = http.createServer((_, response) => response.end(body));
await new Promise((resolve) => origin.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${origin.address().port}/file`;

const aria2 = new Aria2({ host, port, secure: false, secret: process.env.SVC_TOKEN, path: "/jsonrpc" });
const told = [];
const waiters = [];
for (const kind of ["Start", "Pause", "Stop", "Complete", "Error"]) {
    aria2.on(`onDownload${kind}`, ([{ gid }]) => {
        told.push(`${kind} ${gid}`);
        waiters.forEach((look) => look());
    });
}
const hears = (what) => new Promise((resolve) => {
    const look = () => told.includes(what) && resolve();
    waiters.push(look);
    look();
});

await aria2.open();
const methods = await aria2.listMethods();
assert.equal(methods.length, 36);
assert.deepEqual((await aria2.listNotifications()).length, 6);

const gid = await aria2.call("addUri", [url], { out: "from-node" });
await hears(`Complete ${gid}`);
assert.deepEqual(told, [`Start ${gid}`, `Complete ${gid}`]);
const status = await aria2.call("tellStatus", gid, ["status", "totalLength"]);
assert.deepEqual(status, { status: "complete", totalLength: "5000" });

const [stat, version] = await aria2.multicall([["getGlobalStat"], ["getVersion"]]);
assert.equal(stat[0].numStopped, "1");
assert.ok(version[0].version);
const answers = await Promise.all(await aria2.batch([["getVersion"], ["tellStopped", 0, 10, ["gid"]]]));
assert.deepEqual(answers[1], [{ gid }]);
await assert.rejects(aria2.call("tellStatus", "zz"), /Invalid GID zz/);

await aria2.close();
origin.close();
console.log(`aria2 from npm has what it needs: ${told.length} notifications`);

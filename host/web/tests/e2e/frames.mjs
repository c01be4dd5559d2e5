// Figures of the list: 10,000 tasks of which 200 run, scrolled for ten seconds; then opening with many tasks.
// SVC_BIN=… node tests/e2e/frames.mjs [TASKS] [RUNNING] [MINUTES OF HEAP]
import { startOrigin } from './origin.mjs';
import { launch, open, pageOf, signIn } from './page.mjs';
import { KEY, Service } from './service.mjs';

const [tasks = 10_000, running = 200, minutes = 0] = process.argv.slice(2).map(Number);
const service = await Service.start(process.env.SVC_BIN);
const origin = await startOrigin();
const served = await pageOf(service);
const browser = await launch();
const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

async function create() {
  let next = 0;
  const one = async () => {
    while (next < tasks) {
      const at = next++;
      const isRunning = at < running;
      const url = `${origin.url}/file/task-${String(at).padStart(6, '0')}.bin?size=${isRunning ? 20_000_000 : 5000}&rate=${isRunning ? 4000 : 0}`;
      await service.api('POST', 'tasks', { url, startPaused: !isRunning, segments: isRunning ? 4 : 1 });
    }
  };
  await Promise.all(Array.from({ length: 16 }, one));
}

try {
  const begin = performance.now();
  const { page, context } = await open(browser, { width: 1280, height: 900 });
  await signIn(page, served.url, KEY);
  // As many at once as are to run.
  await page.evaluate(
    ([key, most]) =>
      new Promise((done, failed) => {
        const socket = new WebSocket(new URL('rpc', location.href.replace(/^http/, 'ws').replace(/#.*/, '')), ['svc.rpc.v1', `svc.token.${btoa(key).replace(/=+$/, '')}`]);
        const send = (id, method, params) => socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
        socket.onerror = failed;
        socket.onopen = () => send(1, 'system.hello', { clientName: 'frames', clientVersion: '1', minProtocolVersion: 1, maxProtocolVersion: 1, requestedRole: 'agent' });
        socket.onmessage = (event) => {
          const { id, result, error } = JSON.parse(event.data);
          if (error) failed(new Error(error.message));
          else if (id === 1) send(2, 'daemon.config.get', {});
          else if (id === 2) send(3, 'daemon.config.patch', { expectedRevision: result.revision, values: { max_concurrent_tasks: String(Math.max(1, most)) } });
          else if (id === 3) done();
        };
      }),
    [KEY, running],
  );
  await create();
  console.log(`${tasks} tasks made in ${Math.round((performance.now() - begin) / 1000)} s`);
  await page.waitForFunction((count) => document.querySelector('[data-grid]')?.getAttribute('aria-rowcount') === String(count + 1), tasks, { timeout: 120_000 });
  const active = async () => Number((await page.locator('nav button', { hasText: 'Downloading' }).innerText()).replace(/\D+/g, ''));
  for (const end = Date.now() + 60_000; (await active()) < Math.min(running, tasks) && Date.now() < end; ) await page.waitForTimeout(500);
  console.log(`running: ${await active()}`);
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const metric = async (name) => (await cdp.send('Performance.getMetrics')).metrics.find((one) => one.name === name).value;

  const still = await metric('TaskDuration');
  await page.waitForTimeout(5000);
  console.log(`page, live and not scrolled: ${(((await metric('TaskDuration')) - still) / 5 * 100).toFixed(1)} % of a core`);

  await page.evaluate(() => {
    const frames = [];
    const tasksLong = [];
    let last = performance.now();
    const begin = last;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => tasksLong.push(entry.duration))).observe({ type: 'longtask' });
    const step = (now) => {
      if (now - begin > 1000) frames.push(now - last);
      last = now;
      globalThis.frames_ = { frames, tasksLong };
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  const list = page.locator('[data-grid] .scroll');
  await list.hover();
  const busy = await metric('TaskDuration');
  const from = performance.now();
  for (let at = 0; performance.now() - from < 10_000; at++) {
    await page.mouse.wheel(0, Math.floor(at / 100) % 2 === 0 ? 240 : -240);
    await page.waitForTimeout(16);
  }
  const used = ((await metric('TaskDuration')) - busy) / ((performance.now() - from) / 1000);
  const { frames, tasksLong } = await page.evaluate(() => globalThis.frames_);
  const sorted = frames.sort((a, b) => a - b);
  console.log(`frames while scrolling: ${sorted.length}; p50 ${percentile(sorted, 0.5).toFixed(1)}, p95 ${percentile(sorted, 0.95).toFixed(1)}, p99 ${percentile(sorted, 0.99).toFixed(1)}, max ${sorted.at(-1).toFixed(1)} ms; long tasks ${tasksLong.length}; ${(used * 100).toFixed(1)} % of a core`);

  for (let minute = 0; minute <= minutes; minute++) {
    await cdp.send('HeapProfiler.collectGarbage');
    console.log(`heap after ${minute} min: ${((await metric('JSHeapUsedSize')) / 1048576).toFixed(1)} MiB`);
    if (minute < minutes) await page.waitForTimeout(60_000);
  }

  const opened = [];
  for (let round = 0; round < 5; round++) {
    await page.reload();
    await page.locator('[data-id]').first().waitFor({ timeout: 60_000 });
    opened.push(await page.evaluate(() => {
      const paint = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN;
      const row = performance.getEntriesByName('svc-first-row')[0]?.startTime ?? NaN;
      return [paint, row];
    }));
  }
  const median = (place) => opened.map((one) => one[place]).sort((a, b) => a - b)[2];
  console.log(`opened: first paint ${median(0).toFixed(0)} ms, first row ${median(1).toFixed(0)} ms (median of 5)`);
} finally {
  await browser.close();
  await served.stop();
  await origin.stop();
  await service.stop();
}
process.exit(0);

// Why a request waited: from what the scheduler answered meanwhile.
"use strict";

const REQUEST = ["device", "process", "op", "sector", "sectors", "queued", "made", "inserted", "chosen", "reason", "issued", "ended", "absorbed"];
const ANSWER = ["at", "device", "request", "process", "gave", "reason"];
const unpacked = (names) => (row) => Object.fromEntries(names.map((name, at) => [name, row[at]]));

const jobOf = (excerpt, process) => (process == null ? "no process" : excerpt.processes[process] ?? `process ${process}`);
const times = (count) => (count === 1 ? "once" : `${count} times`);

// What the scheduler answered from when the request came to it until it was chosen.
function answersBefore(excerpt, number) {
  const request = excerpt.requests[number];
  if (request.inserted == null) return [];
  const own = excerpt.answers.findIndex((answer) => answer.request === number);
  const end = own >= 0 ? own : excerpt.answers.length;
  const isMeanwhile = (answer) => answer.device === request.device && answer.at >= request.inserted;
  return excerpt.answers.slice(0, end).filter(isMeanwhile);
}

// How often each occurs, the most frequent first.
function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

const atDevice = (excerpt, device, at) =>
  excerpt.requests.filter((one) => one.device === device && one.issued != null && one.issued < at && !(one.ended <= at && one.ended != null)).length;

// The story of a request: a title, and sentences.
function story(excerpt, number) {
  const request = excerpt.requests[number];
  const size = request.sectors > 0 ? ` of ${request.sectors * 512 / 1024} KiB at sector ${request.sector}` : "";
  const title = `${request.op}${size}, of ${jobOf(excerpt, request.process)} (process ${request.process ?? "-"})`;
  const sentences = [];
  const begin = request.queued ?? request.made;
  if (request.made > begin) sentences.push(`It waited ${latency(request.made - begin)} for a free request or a limit.`);
  if (request.absorbed) {
    sentences.push("It was merged into an adjacent request.");
    return { title, sentences };
  }
  if (request.inserted != null && request.inserted > request.made) {
    sentences.push(`It reached the scheduler after ${latency(request.inserted - request.made)} in the plug of its process or behind a flush.`);
  }
  if (request.chosen != null) {
    const since = request.inserted ?? request.made;
    sentences.push(`It waited ${latency(request.chosen - since)} in the scheduler, and was chosen because: ${excerpt.reasons[request.reason]}.`);
  } else if (request.issued != null) {
    const since = request.inserted ?? request.made;
    sentences.push(`No scheduler chose it: the device accepted it after ${latency(request.issued - since)}.`);
  } else if (request.sectors === 0) {
    sentences.push("It has no data: it waited for the device to be flushed.");
  } else {
    sentences.push("It was not chosen before the recording ended.");
  }
  const before = answersBefore(excerpt, number);
  if (request.inserted != null && request.inserted < 0 && before.length) {
    sentences.push("It was inserted before the excerpt began; the decisions until then were not recorded.");
  }
  if (request.chosen != null && request.chosen > excerpt.answers_end_ns) {
    sentences.push("It waited longer than decisions were recorded; there were more than these.");
  }
  const given = before.filter((answer) => answer.gave);
  const nothing = before.filter((answer) => !answer.gave);
  const because = (answer) => `${jobOf(excerpt, answer.process)}: ${excerpt.reasons[answer.reason]}`;
  if (given.length) {
    sentences.push(`Meanwhile the scheduler dispatched ${given.length} other ${given.length === 1 ? "request" : "requests"}:`);
    sentences.push(counted(given.map(because)).map(([why, count]) => `${count} of ${why}`));
  }
  if (nothing.length) {
    sentences.push(`The scheduler dispatched nothing ${times(nothing.length)}:`);
    sentences.push(counted(nothing.map((answer) => excerpt.reasons[answer.reason])).map(([why, count]) => `${times(count)}: ${why}`));
  }
  if (request.issued != null) {
    const since = request.chosen ?? request.issued;
    if (request.issued > since) sentences.push(`It was issued to the device ${latency(request.issued - since)} later.`);
    // Of what came after the excerpt nothing is known.
    if (request.issued <= excerpt.end_ns) sentences.push(`The device had ${atDevice(excerpt, request.device, request.issued)} other requests in flight.`);
    sentences.push(request.ended == null ? "It had not completed when the recording ended." : `The device completed it after ${latency(request.ended - request.issued)}.`);
  }
  return { title, sentences };
}

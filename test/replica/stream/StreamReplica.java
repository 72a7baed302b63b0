// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.StreamConsumer;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * Consumes a scalable topic in order and reports each message as PacedFunction does, or publishes messages with
 * distinct keys, one an entry.
 */
final class StreamReplica {
    public static void main(String[] args) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(args[1]).build();
        if (args[0].equals("publish")) {
            publish(client, args[2], Integer.parseInt(args[3]));
        } else {
            consume(client, args[2], args[3], new ObjectMapper().readTree(args[4]));
        }
    }

    private static void publish(PulsarClient client, String topic, int count) throws Exception {
        try (Producer<byte[]> producer = client.newProducer(Schema.bytes()).topic(topic)
                .batchingPolicy(BatchingPolicy.ofDisabled()).create()) {
            List<CompletableFuture<?>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sent.add(producer.async().newMessage().key("key-" + i).value(new byte[100]).send());
            }
            CompletableFuture.allOf(sent.toArray(new CompletableFuture<?>[0])).get();
        }
        System.exit(0); // threads of the client remain
    }

    private static void consume(PulsarClient client, String topic, String subscription, JsonNode config)
            throws Exception {
        long pause = Math.max(1, config.get("serviceMicros").asLong() / 1000);
        String[] collector = config.get("collector").asText().split(":");
        StreamConsumer<byte[]> consumer = client.newStreamConsumer(Schema.bytes()).topic(topic)
                .subscriptionName(subscription).consumerName("consumer-" + ProcessHandle.current().pid())
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe();
        PrintStream reports = new PrintStream(new Socket(collector[0], Integer.parseInt(collector[1])).getOutputStream());
        reports.print(config.get("token").asText() + "\n");
        while (true) {
            Message<byte[]> message = consumer.receive();
            Thread.sleep(pause);
            consumer.acknowledgeCumulative(message.id());
            reports.print(message.publishTime().toEpochMilli() + " " + System.currentTimeMillis() + " 0 0\n");
        }
    }
}

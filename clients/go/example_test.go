package postbote_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"postbote"
)

func Example() {
	ctx := context.Background()
	client, err := postbote.New(postbote.Options{URL: "http://127.0.0.1:8082", Key: os.Getenv("POSTBOTE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	bot, err := client.CreateBot(ctx, postbote.NewBot{FirstName: "Echo", Username: "echo_bot"})
	if err != nil {
		log.Fatal(err)
	}
	message := map[string]any{
		"message_id": 1, "date": 1795259700, "chat": map[string]any{"id": 42, "type": "private"}, "text": "hello",
	}
	item := postbote.Item{BotID: bot.BotID, Update: map[string]any{"message": message}, OrderingKey: "42"}
	result, err := client.Push(ctx, item)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.UpdateID)
}

func ExampleClient_OpenStream() {
	ctx := context.Background()
	client, err := postbote.New(postbote.Options{Key: os.Getenv("POSTBOTE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	stream, err := client.OpenStream(postbote.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	update := []byte(`{"message":{"message_id":1,"date":1795259700,"chat":{"id":42,"type":"private"},"text":"hello"}}`)
	pending, err := stream.Push(ctx, postbote.Item{BotID: 4711, Update: update})
	if err != nil {
		log.Fatal(err)
	}
	result, err := pending.Wait(ctx)
	var failed *postbote.Error
	if errors.As(err, &failed) && failed.Code == postbote.CodeQueueFull {
		log.Fatal("the bot does not take its updates")
	}
	fmt.Println(result, err)
}
